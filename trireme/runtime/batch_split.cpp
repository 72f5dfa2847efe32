#include "trireme/runtime/batch_split.hpp"

#include "trireme/base/error.hpp"

namespace trireme {
bool same_instructions(const Program& a, const Program& b) {
  if (a.instructions.size() != b.instructions.size()) return false;
  for (std::size_t i = 0; i < a.instructions.size(); ++i) {
    const Instruction &x = a.instructions[i], &y = b.instructions[i];
    if (x.operation != y.operation || x.update != y.update || x.shared_bytes != y.shared_bytes) return false;
  }
  return true;
}

BatchSplit::BatchSplit(std::vector<Program> programs, VariableStore& store, std::uint64_t seed, bool own_statistics,
                       const ReplicaPlace& replica, InterOpPool* pool, GroupThreads* threads)
    : threads_(threads) {
  for (const Program& program : programs) {
    if (!same_instructions(program, programs.front())) {
      fail(ErrorKind::failed, "the groups of a split batch were given different programs; --batch-split 1 avoids it");
    }
  }
  const int groups = static_cast<int>(programs.size());
  GroupPlace place{
      .groups = groups, .own_statistics = own_statistics, .barrier = groups > 1 ? &threads->barrier() : nullptr};
  shared_ = AlignedMemory(shared_bytes(programs.front()) * statistics_groups(place, replica));
  for (Program& program : programs) {
    executables_.push_back(
        std::make_unique<Executable>(std::move(program), store, seed, pool, place, replica, shared_.at(0)));
    ++place.group;
  }
  run_group_ = [this](int index) { group(index).run_share(); };
}

void BatchSplit::run() {
  if (groups() == 1) {
    group(0).run_share();
  } else {
    threads_->run(run_group_);
  }
  group(0).count_run();
}

void BatchSplit::set_exchange(GradientExchange* exchange, const GradientOptions& options) {
  for (int index = 0; index < groups(); ++index) group(index).set_exchange(index == 0 ? exchange : nullptr, options);
}

double BatchSplit::mean_output(int fetch) const {
  double sum = 0;
  for (int index = 0; index < groups(); ++index) sum += group(index).output(fetch)[0];
  return sum / groups();
}

}  // namespace trireme
