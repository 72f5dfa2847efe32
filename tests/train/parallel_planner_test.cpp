#include "trireme/train/parallel_planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace trireme::train {
namespace {

constexpr double kMegabyte = 1e6;

// Layers of equal work, each with as many bytes of variables and results.
NetworkCosts equal_layers(int count, double seconds_per_image, double variables, double crossing) {
  NetworkCosts network{.layers = {}, .update = 0, .copies = 4};
  for (int i = 0; i < count; ++i) {
    network.layers.push_back({.begins_at = "layer" + std::to_string(i),
                              .forward = {.per_image = seconds_per_image},
                              .backward = {.per_image = seconds_per_image},
                              .weights = {.per_image = seconds_per_image},
                              .crossing = crossing,
                              .kept = crossing,
                              .variables = variables});
  }
  network.layers.back().crossing = 0;
  return network;
}

// Like VGG-16: convolutions with most of the work, then fully connected layers with most of the variables.
NetworkCosts like_vgg() {
  NetworkCosts network = equal_layers(13, 10e-3, 4 * kMegabyte, 0.8 * kMegabyte);
  network.layers.back().crossing = 0.1 * kMegabyte;
  for (int i = 0; i < 3; ++i) {
    network.layers.push_back({.begins_at = "fc" + std::to_string(6 + i),
                              .forward = {.fixed = 5e-3},
                              .backward = {.fixed = 5e-3},
                              .weights = {.fixed = 5e-3},
                              .crossing = 0.016 * kMegabyte,
                              .kept = 0.016 * kMegabyte,
                              .variables = 160 * kMegabyte});
  }
  network.layers.back().crossing = 0;
  return network;
}

// One worker per host.
JobCosts job_of(int workers, double bits_per_second, std::int64_t images) {
  JobCosts job{.nodes = std::vector<int>(static_cast<std::size_t>(workers)),
               .links = {},
               .images = images,
               .bucket_bytes = 25'000'000};
  std::iota(job.nodes.begin(), job.nodes.end(), 0);
  job.links.across = {.latency_seconds = 50e-6, .bytes_per_second = bits_per_second / 8};
  return job;
}

TEST(ParallelPlanner, KeepsLargeMatricesOutOfASlowNetwork) {
  JobCosts job = job_of(4, 1e9, 24);
  job.kind = PipelineKind::one_forward;
  const std::vector<ParallelPlan> plans = make_plans(like_vgg(), job);
  ASSERT_GE(plans.size(), 2U);
  EXPECT_FALSE(plans.front().pipeline.is_used());
  const ParallelPlan& best = plans[1];
  EXPECT_EQ(best.pipeline.text(), "hybrid:3-1");
  ASSERT_EQ(best.pipeline.cuts.size(), 1U);
  const std::string& cut = best.pipeline.cuts.front();  // or a little earlier, which gives the last worker more to do
  EXPECT_TRUE(cut == "fc6" || cut == "layer12" || cut == "layer11") << cut;
  EXPECT_GT(plans.front().seconds / best.seconds, 2);
}

TEST(ParallelPlanner, LeavesANetworkWholeIfTheLinksAreFast) {
  const NetworkCosts network = equal_layers(50, 1e-3, 2 * kMegabyte, 0.8 * kMegabyte);
  const std::vector<ParallelPlan> plans = make_plans(network, job_of(4, 100e9, 64));
  for (const ParallelPlan& plan : plans)
    EXPECT_GE(plan.seconds, plans.front().seconds * (1 - 1e-9)) << plan.pipeline.text();
}

TEST(ParallelPlanner, PlansCanBeRun) {
  for (const int workers : {2, 3, 4, 6}) {
    for (const ParallelPlan& plan : make_plans(like_vgg(), job_of(workers, 1e9, 12 * workers))) {
      if (!plan.pipeline.is_used()) continue;
      const std::vector<int>& replicas = plan.pipeline.replicas;
      EXPECT_EQ(std::accumulate(replicas.begin(), replicas.end(), 0), workers);
      EXPECT_EQ(plan.pipeline.cuts.size() + 1, replicas.size() * default_chunks(plan.pipeline.kind));
      EXPECT_EQ(12 * workers % plan.pipeline.micro_batches, 0);
      for (const int each : replicas) EXPECT_EQ(plan.pipeline.micro_batches % each, 0);
    }
  }
}

// p stages of equal work and m micro-batches take (m + p - 1) / m times as long as without idle time.
TEST(ParallelPlanner, PredictsThePipelineOfTheFormula) {
  const NetworkCosts network = equal_layers(4, 1e-3, 0, 0);
  JobCosts job = job_of(4, 1e15, 8);
  job.links.across.latency_seconds = 0;
  ParallelPlan plan{.pipeline = {.replicas = {1, 1, 1, 1}, .cuts = {"layer1", "layer2", "layer3"}, .micro_batches = 8}};
  predict(plan, network, job);
  EXPECT_NEAR(plan.seconds, 11 * 3e-3, 1e-9);
  EXPECT_NEAR(plan.idle_share, 3.0 / 11, 1e-9);
}

TEST(ParallelPlanner, SumsOfGradientsHideBehindBackward) {
  const NetworkCosts network = equal_layers(10, 10e-3, 10 * kMegabyte, 0);
  JobCosts job = job_of(2, 8e9, 2);  // 10 ms for a layer's gradients, 20 ms for its backward
  job.bucket_bytes = 10'000'000;
  ParallelPlan plan;
  predict(plan, network, job);
  const double compute = 10 * 30e-3;
  EXPECT_GT(plan.seconds, compute + 10e-3);
  EXPECT_LT(plan.seconds, compute + 15e-3);
  job.overlap = false;
  predict(plan, network, job);
  EXPECT_GT(plan.seconds, compute + 100e-3);
}

TEST(ParallelPlanner, KeepsToTheMemory) {
  const NetworkCosts network = equal_layers(40, 1e-3, kMegabyte, 10 * kMegabyte);
  JobCosts job = job_of(4, 10e9, 32);
  const ParallelPlan data = make_plans(network, job).front();
  EXPECT_NEAR(data.memory, 8 * 40 * 10 * kMegabyte + 4 * 40 * kMegabyte, kMegabyte);
  job.memory = data.memory / 4;
  const std::vector<ParallelPlan> plans = make_plans(network, job);
  ASSERT_GE(plans.size(), 2U);
  for (std::size_t i = 1; i < plans.size(); ++i) EXPECT_LE(plans[i].memory, job.memory) << plans[i].pipeline.text();
}

TEST(ParallelPlanner, KeepsToWhatIsGiven) {
  const NetworkCosts network = equal_layers(40, 10e-3, kMegabyte, 0.01 * kMegabyte);
  JobCosts job = job_of(4, 10e9, 64);
  job.micro_batches = 16;
  for (const PipelineKind kind :
       {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::interleaved, PipelineKind::zero_bubble}) {
    job.kind = kind;
    const std::vector<ParallelPlan> plans = make_plans(network, job);
    EXPECT_GE(plans.size(), 3U);
    for (std::size_t i = 1; i < plans.size(); ++i) {
      const PipelineConfig& pipeline = plans[i].pipeline;
      EXPECT_EQ(pipeline.micro_batches, 16);
      if (pipeline.stages() == 1) continue;
      EXPECT_EQ(to_string(pipeline.kind), to_string(kind)) << pipeline.text();
      EXPECT_EQ(std::ssize(pipeline.cuts) + 1, pipeline.stages() * default_chunks(kind)) << pipeline.text();
    }
  }
  job = job_of(4, 10e9, 64);
  job.least_images = 8;
  const std::vector<ParallelPlan> plans = make_plans(network, job);
  for (std::size_t i = 1; i < plans.size(); ++i) EXPECT_LE(plans[i].pipeline.micro_batches, 8);
}

// Two parts of the network per stage fill the pipeline in half the time.
TEST(ParallelPlanner, PredictsTheInterleavedPipelineOfTheFormula) {
  const NetworkCosts network = equal_layers(8, 1e-3, 0, 0);
  JobCosts job = job_of(4, 1e15, 8);
  job.links.across.latency_seconds = 0;
  job.kind = PipelineKind::interleaved;
  job.micro_batches = 8;
  const std::vector<ParallelPlan> plans = make_plans(network, job);
  const auto found = std::ranges::find(plans, 4, [](const ParallelPlan& plan) { return plan.pipeline.stages(); });
  ASSERT_NE(found, plans.end());
  EXPECT_NEAR(found->seconds, (8 + 3.0 / 2) * 6e-3, 1e-9);
}

// Thousands of layers are joined: the search stays short.
TEST(ParallelPlanner, AVeryDeepNetworkIsPlannedToo) {
  const std::vector<ParallelPlan> plans =
      make_plans(equal_layers(5000, 1e-4, 0.1 * kMegabyte, 0.5 * kMegabyte), job_of(8, 1e9, 64));
  EXPECT_GE(plans.size(), 3U);
}

}  // namespace
}  // namespace trireme::train
