#include "trireme/backend/tuner.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "trireme/base/aligned_memory.hpp"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Memory for one kernel to run on by itself.
class Workspace {
 public:
  Workspace(const KernelChoice& choice, const KernelRequest& request) {
    for (std::size_t i = 0; i < choice.inputs.size(); ++i) {
      memory.inputs.push_back(
          take(TensorDesc{request.inputs[i].dtype, request.inputs[i].shape, choice.inputs[i]}.bytes()));
    }
    for (std::size_t i = 0; i < choice.outputs.size(); ++i) {
      const TensorType& type = request.node.outputs[i];
      memory.outputs.push_back(take(TensorDesc{type.dtype, type.shape, choice.outputs[i]}.bytes()));
    }
    if (choice.scratch_bytes > 0) memory.scratch = take(choice.scratch_bytes);
  }
  KernelMemory memory;

 private:
  void* take(std::int64_t bytes) {
    owned_.emplace_back(bytes);
    auto* values = static_cast<float*>(owned_.back().at(0));
    // Touched, so that no page is first touched while the clock runs; and with no denormal numbers, which are slow.
    std::fill(values, values + bytes / 4, 0.5f);
    return values;
  }
  std::vector<AlignedMemory> owned_;
};

double measure(Kernel& kernel, bool thorough) {
  const auto run = [&] {
    const auto start = Clock::now();
    kernel.run({});
    return since(start);
  };
  const double warm_up = run();
  // Short kernels are noisy and cheap to repeat.
  constexpr double kLong = 0.03;
  const int runs = thorough ? 7 : (warm_up > kLong ? 1 : 3);
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < runs; ++i) best = std::min(best, run());
  return best;
}

}  // namespace

Tuner::Tuner(TuningOptions options, const std::string& library)
    : options_(std::move(options)), machine_(fmt::format("{} | {}", options_.cpu, library)) {
  if (!options_.cache) options_.cache = std::make_shared<TuneCache>();
}

double Tuner::seconds_of(const std::string& problem, Alternative& alternative, const KernelRequest& request) const {
  if (const auto known = options_.cache->find(problem, alternative.name)) return *known;
  if (options_.on_first && options_.cache->added() == 0) options_.on_first();
  const auto start = Clock::now();
  const Workspace workspace(alternative.choice, request);
  alternative.choice.kernel->bind(workspace.memory);
  const double seconds = measure(*alternative.choice.kernel, options_.autotune == Autotune::full);
  options_.cache->add(problem, alternative.name, seconds, since(start));
  return seconds;
}

KernelChoice Tuner::fastest(const std::string& problem, std::vector<Alternative> alternatives,
                            const KernelRequest& request) const {
  const auto forced = std::find_if(alternatives.begin(), alternatives.end(),
                                   [&](const Alternative& a) { return a.name == options_.force; });
  if (forced != alternatives.end()) return std::move(forced->choice);
  if (options_.autotune == Autotune::off || alternatives.size() == 1) return std::move(alternatives.front().choice);
  const std::string key = fmt::format("{} | {} threads | {}{}", machine_, omp_get_max_threads(), problem,
                                      options_.autotune == Autotune::full ? " | full" : "");
  std::vector<double> seconds;
  for (Alternative& alternative : alternatives) seconds.push_back(seconds_of(key, alternative, request));
  const auto best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
  return std::move(alternatives[static_cast<std::size_t>(best)].choice);
}

}  // namespace trireme
