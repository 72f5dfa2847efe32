// The part of Worker that compares its steps with what was measured before them.
#include <algorithm>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/parallel/all_reduce_sync.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

constexpr std::size_t kFewestSteps = 20, kMostSteps = 4096;
constexpr double kKernelFactor = 1.5, kNetworkFactor = 2;
constexpr const char* kMedian = "median";

bool is_quiet(const perf::Machine& machine) { return machine.load <= perf::kBusyLoad * machine.cores; }

// Other programs can make steps longer, so longer ones prove something only on a quiet machine.
bool prove_something(const std::optional<double>& seconds, double expected) {
  constexpr std::chrono::milliseconds kLook{100};
  return seconds && (*seconds < expected || is_quiet(perf::read_machine(perf::current_load(kLook))));
}

}  // namespace

std::optional<double> contradiction(const perf::Summary& measured, double expected, double factor) {
  if (factor * measured.median < expected) return measured.median;
  if (measured.minimum > factor * expected) return measured.minimum;
  return std::nullopt;
}

void Worker::count_step() {
  if (compute_seconds_.empty()) compute_seconds_.reserve(kMostSteps), last_bucket_seconds_.reserve(kMostSteps);
  if (compute_seconds_.size() == kMostSteps) return;
  const Executable::ExchangeTimes& exchange = step_->executable().exchange_times();
  compute_seconds_.push_back(step_seconds_ - (replicas_ ? exchange.wait + exchange.stages : 0));
  if (!setup_.network || pipeline_ != nullptr) return;
  const std::span<const double> buckets = replicas_->sync().communication_seconds();
  if (!buckets.empty()) last_bucket_seconds_.push_back(buckets.back());  // a stage of one worker has none
}

void Worker::judge_timings() {
  if (compute_seconds_.size() < kFewestSteps) return;
  judge_kernel_timings();
  judge_network_figures();
}

// Beside the timings of kernels lies how long a step took that was made of them.
void Worker::judge_kernel_timings() {
  if (config_.autotune == Autotune::off || servers_ != nullptr || workers_->rank() > 0) return;
  TuneCache& cache = *tuning_.cache;
  const perf::Summary now = perf::summarize(compute_seconds_);
  const comm::Layout layout = comm::layout_of(*workers_);
  const std::string step = fmt::format("{} {} {} {} {}", tuning_.cpu, setup_.device, layout.nodes,
                                       layout.most_ranks_per_node, to_json(config_).dump());
  const std::string problem =
      fmt::format("step {:016x} of build {}", hash_bytes(std::as_bytes(std::span(step))), perf::build_info().git);
  const auto before = setup_.kernels_timed > 0 ? std::nullopt : cache.find(problem, kMedian);
  if (!before) {
    if (!cache.now().is_busy() && is_quiet(perf::read_machine())) cache.add(problem, kMedian, now.median);
  } else if (const auto seconds = contradiction(now, *before, kKernelFactor); prove_something(seconds, *before)) {
    log_line(
        fmt::format("warning: a step takes {}, and took {} with the same timings of kernels before; kernels will "
                    "be timed again next time",
                    format_seconds(*seconds), format_seconds(*before)));
    cache.doubt();
  }
  std::ignore = keep_timings(cache);  // the first attempt to keep them has warned
}

void Worker::judge_network_figures() {
  if (!setup_.network || pipeline_ != nullptr || elastic_ != nullptr) return;  // its steps commit in the last bucket
  const bool crosses = comm::layout_of(*workers_).nodes > 1;
  const auto kind = crosses ? &comm::TransportFits::other_host : &comm::TransportFits::same_host;
  const auto& figures = *setup_.network.*kind;
  if (!figures) return;
  const auto& sync = dynamic_cast<const parallel::AllReduceSync&>(replicas_->sync());
  double expected = sync.reducer().seconds_for(sizeof(float)).value_or(0);  // the vote
  for (const std::span<float> part : sync.buckets().back().parts) {
    const auto seconds = sync.reducer().seconds_for(static_cast<std::int64_t>(part.size_bytes()));
    if (!seconds) return;
    expected += *seconds;
  }
  // The rank that comes last waits for nobody.
  workers_->set_context("comparing steps with the network's figures");
  perf::Summary least = perf::summarize(last_bucket_seconds_);
  for (const perf::Summary& each : comm::all_gather_value(*workers_, least)) {
    least.median = std::min(least.median, each.median);
    least.minimum = std::min(least.minimum, each.minimum);
  }
  if (workers_->rank() > 0) return;
  const auto seconds = contradiction(least, expected, kNetworkFactor);
  if (!prove_something(seconds, expected)) return;
  log_line(
      fmt::format("warning: the last all-reduce of a step takes {}, and {} by the figures in {}, which are in "
                  "doubt; repeat `trireme net`",
                  format_seconds(*seconds), format_seconds(expected), config_.distribution.network_file));
  try {
    comm::mark_contradicted(config_.distribution.network_file, std::string(workers_->protocol()), kind, figures->when);
  } catch (const Error&) {  // it may be another user's file
  }
}

}  // namespace trireme::train
