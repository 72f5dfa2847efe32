// Once memory has been touched, a step allocates nothing and meets no page for the first time.
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "counted_allocations.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/parallel/peer_watch.hpp"
#include "trireme/parallel/pipeline_link.hpp"
#include "trireme/train/prepared_step.hpp"

namespace trireme::lab {
namespace {

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct Case {
  std::string model;
  std::int64_t batch;
  int groups;
};

void PrintTo(const Case& of, std::ostream* stream) { *stream << of.model; }

class SteadyState : public testing::TestWithParam<Case> {};

TEST_P(SteadyState, AStepAllocatesNothing) {
  const Case& of = GetParam();
  const auto names = backend_names();
  if (std::find(names.begin(), names.end(), "onednn") == names.end()) GTEST_SKIP() << "needs oneDNN";
  if (omp_get_num_procs() < of.groups) GTEST_SKIP() << "needs " << of.groups << " processors";
  train::StepOptions options;
  options.model = of.model;
  options.batch_size = of.batch;
  options.bind = false;
  const train::StepConfig config = resolve(options);
  keep_freed_memory();  // as the program does
  const auto backend = make_backend("onednn");
  train::PreparedStep step(config, perf::plan_threads(1, 1, false, of.groups), *backend);
  constexpr int kSteps = 3;
  const auto run_steps = [&] {
    for (int i = 0; i < kSteps; ++i) step.run(0.001);
  };
  // The memory of libraries grows when two threads want some at the same time for the first time, in whatever step that
  // happens: what counts is that there are steps without.
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < 6; ++round) {
    const std::int64_t before = page_faults();
    run_steps();
    fewest = std::min(fewest, page_faults() - before);
  }
  EXPECT_LE(fewest, 10 * kSteps);

  testkit::start_counting();
  run_steps();
  EXPECT_EQ(testkit::stop_counting().ours, 0);
}

INSTANTIATE_TEST_SUITE_P(Networks, SteadyState,
                         testing::Values(Case{"mnist", 4, 1}, Case{"mnist", 4, 2}, Case{"resnet20", 4, 1},
                                         Case{"resnet20", 4, 2}, Case{"alexnet_cifar", 4, 1}, Case{"googlenet", 1, 1}),
                         [](const auto& each) { return each.param.model + "_" + std::to_string(each.param.groups); });

TEST(SteadyState, ATracedStepAllocatesNothing) {
  train::StepOptions options;
  options.model = "mnist";
  options.batch_size = 2;
  options.bind = false;
  const auto backend = make_backend("reference");
  train::PreparedStep step(resolve(options), perf::plan_threads(1, 1, false, 1), *backend);
  perf::Recorder recorder;
  step.set_recorder(recorder);
  recorder.set_recording(true);
  step.run(0.001);
  const auto spans = recorder.tracks().front().spans().size();
  testkit::start_counting();
  step.run(0.001);
  EXPECT_EQ(testkit::stop_counting().ours, 0);
  EXPECT_EQ(recorder.tracks().front().spans().size(), 2 * spans);
}

TEST(SteadyState, AStepOfMicroBatchesAllocatesNothing) {
  train::StepOptions options;
  options.model = "resnet20";
  options.batch_size = 4;
  options.bind = false;
  options.distribution.parallel = "pipeline:1";
  options.distribution.micro_batches = 4;
  const auto backend = make_backend(default_backend());
  train::PreparedStep step(resolve(options), perf::plan_threads(1, 1, false, 1), *backend);
  step.run(0.001);
  testkit::start_counting();
  step.run(0.001);
  EXPECT_EQ(testkit::stop_counting().ours, 0);
}

// Once every message has been sent some times. The watch sends its own all the time.
TEST(SteadyState, StagesOfAPipelineAllocateNothing) {
  train::StepOptions options;
  options.model = "resnet20";
  options.batch_size = 4;
  options.bind = false;
  options.distribution.parallel = "pipeline:2";
  options.distribution.micro_batches = 4;
  const train::StepConfig config = resolve(options, {.workers = 2});
  std::atomic<bool> is_counted = false;
  comm::run_local(2, [&](comm::Communicator& workers) {
    parallel::PeerWatch watch(workers, std::chrono::milliseconds(80));
    parallel::PipelineLink link(workers, {.watch = &watch});
    const auto backend = make_backend(default_backend());
    train::PreparedStep step(config, perf::plan_threads(1, 1, false, 1), *backend, nullptr, workers.rank(), {}, &link);
    const auto run_steps = [&] {
      for (int i = 0; i < 10; ++i) step.run(0.001);
    };
    run_steps();
    if (workers.rank() == 0) testkit::start_counting();
    run_steps();
    if (workers.rank() == 0) {
      EXPECT_EQ(testkit::stop_counting().ours, 0);
      is_counted = true;
    }
    while (!is_counted) std::this_thread::yield();
  });
}

TEST(CountedAllocations, AreCounted) {
  testkit::start_counting();
  auto* value = new std::vector<int>(100);
  const testkit::Allocations allocations = testkit::stop_counting();
  EXPECT_EQ(value->size(), 100u);
  delete value;
  EXPECT_EQ(allocations.ours, 2);
}

}  // namespace
}  // namespace trireme::lab
