#include "trireme/train/replay.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"

namespace trireme::train {
namespace {

struct Left {};

// What a worker of the run was told, told before the step for which it counted.
class ScriptedTeams : public comm::TeamSource {
 public:
  ScriptedTeams(const Membership& membership, int rank) : membership_(membership), rank_(rank) {
    newest_.ranks.resize(membership.nodes.size());
    std::iota(newest_.ranks.begin(), newest_.ranks.end(), 0);
  }

  comm::Team newest() const override {
    const std::lock_guard lock(mutex_);
    return newest_;
  }
  std::optional<comm::Team> wait_for_newer(int epoch, std::chrono::milliseconds longest) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, longest, [&] { return newest_.epoch > epoch; })) return std::nullopt;
    return newest_;
  }
  void set_on_news(std::function<void()> then) override { then_ = std::move(then); }

  void begin_step(std::uint64_t step) override {
    for (const Membership::Change& change : membership_.changes) {
      if (change.step != step || change.team.epoch <= newest().epoch) continue;
      if (std::ranges::find(change.team.ranks, rank_) == change.team.ranks.end()) throw Left();
      {
        const std::lock_guard lock(mutex_);
        newest_ = change.team;
      }
      changed_.notify_all();
      then_();
    }
  }

 private:
  const Membership& membership_;
  const int rank_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  comm::Team newest_;
  std::function<void()> then_;
};

void check_options(const Json& here, const Json& run) {
  Json all = run;
  for (const auto& [key, value] : here.items()) all.emplace(key, nullptr);
  for (const auto& [key, value] : all.items()) {
    if (here.value(key, Json()) == run.value(key, Json())) continue;
    bad_input("--replay: {} is {} here, and was {} in the run; give the same options", key,
              here.value(key, Json()).dump(), run.value(key, Json()).dump());
  }
}

}  // namespace

void replay(const TrainingConfig& config, const Membership& membership, const ReplayWorker& worker) {
  check_options(options_for_replay(config), membership.options);
  const auto size = static_cast<int>(membership.nodes.size());
  comm::run_local({.size = size, .nodes = membership.nodes}, [&](comm::Communicator& workers) {
    TrainingConfig own = config;
    own.step.options.bind = false;  // as many threads as the run had, wherever they find room
    own.step.intra_threads = membership.threads[workers.rank()];
    ScriptedTeams teams(membership, workers.rank());
    try {
      worker(own, {.workers = workers, .teams = &teams});
    } catch (const Left&) {
    }
  });
}

}  // namespace trireme::train
