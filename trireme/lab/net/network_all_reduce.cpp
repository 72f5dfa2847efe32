#include "trireme/lab/net/network_all_reduce.hpp"

#include <array>
#include <cmath>
#include <numeric>

#include "trireme/backend/registry.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/shared_memory.hpp"
#include "trireme/lab/net/network_test.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/step_graph.hpp"

namespace trireme::lab {
namespace {

using comm::Algorithm;

// Rank 0's values are integers below 4096; the others' are larger by their rank. Their sums are exact.
float value_of(std::uint32_t number, std::size_t index) {
  return static_cast<float>(((static_cast<std::uint32_t>(index) + number) * 2654435761U) >> 20);
}

void fill(std::span<float> values, std::uint32_t number, int rank) {
  const auto own = static_cast<float>(rank);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(number, i) + own;
}

void verify(std::span<const float> values, std::uint32_t number, int ranks) {
  constexpr float kTolerance = 4096 * 1e-5F;  // repeated means of equal values may round
  const float more = static_cast<float>(ranks - 1) / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float expected = value_of(number, i) + more;
    if (std::abs(values[i] - expected) <= kTolerance) continue;  // false for NaN
    fail(ErrorKind::failed, "all-reduce: element {} of {} is {}, not {}", i, values.size(), values[i], expected);
  }
}

std::int64_t sum_of(std::span<const std::int64_t> buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

}  // namespace

double AllReduceResult::median() const { return perf::median(seconds); }
double AllReduceResult::jitter() const { return perf::jitter(seconds); }
double AllReduceResult::algorithm_bytes_per_second() const { return static_cast<double>(bytes) / median(); }
double AllReduceResult::bus_bytes_per_second() const { return algorithm_bytes_per_second() * 2 * (ranks - 1) / ranks; }

AllReduceTest::AllReduceTest(comm::Communicator& communicator, std::int64_t most_bytes)
    : communicator_(communicator), arena_(communicator.share(most_bytes)) {
  if (arena_ == nullptr) own_memory_ = AlignedMemory(most_bytes);
  void* memory = arena_ != nullptr ? arena_->data() : own_memory_.at(0);
  values_ = {static_cast<float*>(memory), static_cast<std::size_t>(most_bytes) / sizeof(float)};
}

std::vector<Algorithm> AllReduceTest::algorithms() const {
  std::vector<Algorithm> found{Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree};
  if (arena_ != nullptr) found.push_back(Algorithm::hierarchical);
  if (communicator_.has_library_all_reduce()) found.push_back(Algorithm::library);
  return found;
}

AllReduceResult AllReduceTest::measure(const comm::AllReduceOptions& options, std::span<const std::int64_t> buckets,
                                       double seconds) const {
  comm::AllReducer reducer(communicator_, options, arena_.get());
  AllReduceResult result{.transport = std::string(communicator_.protocol()),
                         .algorithm = options.algorithm,
                         .bytes = sum_of(buckets),
                         .ranks = communicator_.size(),
                         .seconds = {}};
  std::uint32_t number = 0;
  sample(reducer, buckets, 1, ++number);
  const Repetitions repetitions = plan_repetitions(sample(reducer, buckets, 1, ++number), seconds);
  for (std::int64_t i = 0; i < repetitions.samples; ++i) {
    result.seconds.push_back(sample(reducer, buckets, repetitions.per_sample, ++number));
  }
  return result;
}

// The mean of means is the mean, so repetitions need no new values. Returns seconds per repetition, equal on all ranks.
double AllReduceTest::sample(comm::AllReducer& reducer, std::span<const std::int64_t> buckets, std::int64_t repetitions,
                             std::uint32_t number) const {
  const std::span<float> used = values_.first(static_cast<std::size_t>(sum_of(buckets)) / sizeof(float));
  fill(used, number, communicator_.rank());
  comm::barrier(communicator_);
  const auto start = SteadyClock::now();
  for (std::int64_t i = 0; i < repetitions; ++i) {
    std::span<float> rest = used;
    for (const std::int64_t bytes : buckets) {
      const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
      reducer.reduce(rest.first(count), comm::Reduction::mean);
      rest = rest.subspan(count);
    }
  }
  const double seconds = seconds_since(start);
  try {
    verify(used, number, communicator_.size());
  } catch (const Error& error) {
    fail(error.kind(), "{} over {}, seen by rank {}: {}", format_bytes(used.size_bytes()), communicator_.protocol(),
         communicator_.rank(), error.what());
  }
  const std::vector<double> all = comm::all_gather_value(communicator_, seconds);
  return *std::ranges::max_element(all) / static_cast<double>(repetitions);
}

std::vector<std::int64_t> gradient_bucket_bytes(const std::string& model) {
  train::StepOptions options;
  options.model = model;
  options.batch_size = 1;  // gradients have the same size for any batch
  options.autotune = "off";
  const train::StepConfig config = train::resolve(options);
  Graph graph;
  const train::StepGraph step = train::build_step(graph, config);
  CompileOptions compiling = train::compile_options(config);
  compiling.update_bytes = train::bucket_bytes_for(config.distribution, train::trainable_bytes(graph));
  VariableLayouts layouts;
  const auto backend = make_backend(config.backend);
  const Program program = compile(graph, step.fetches, *backend, compiling, layouts);
  std::vector<std::int64_t> buckets;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.node == nullptr || instruction.node->as<op::ApplyGradients>() == nullptr) continue;
    std::int64_t bytes = 0;  // inputs: the learning rate, then values and gradient of each variable
    for (std::size_t i = 2; i < instruction.inputs.size(); i += 2) {
      bytes += program.buffers[instruction.inputs[i]].bytes;
    }
    buckets.push_back(bytes);
  }
  return buckets;
}

}  // namespace trireme::lab
