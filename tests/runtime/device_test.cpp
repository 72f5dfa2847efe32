// Programs on a device that is not the host train to the bit as on the host, with and without recording, and with
// everything that the host does to gradients and variables in between.
#include <gtest/gtest.h>

#include "tests/support/apart_device.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/small_training.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/weight_averages.hpp"

namespace trireme {
namespace {

using testkit::ApartBackend;
using testkit::SmallTraining;

constexpr std::int64_t kBatch = 4;

struct OnHost : SmallTraining {
  explicit OnHost(op::OptimizerKind optimizer = op::OptimizerKind::adam, std::int64_t batch = kBatch)
      : SmallTraining(batch, optimizer_rule(optimizer), 7, 5, make_backend("reference")) {}
};

struct OnDevice : SmallTraining {
  explicit OnDevice(op::OptimizerKind optimizer = op::OptimizerKind::adam, bool records = true)
      : SmallTraining(kBatch, optimizer_rule(optimizer), 7, 5,
                      std::make_unique<ApartBackend>(testkit::ApartDevice::Options{.records = records})) {}
  testkit::ApartDevice& device() { return dynamic_cast<ApartBackend&>(*backend).device(); }
};

// Losses of steps on other samples each time, and of some on the same.
std::vector<float> losses(SmallTraining& training, int steps = 8) {
  std::vector<float> curve;
  for (int i = 0; i < steps; ++i) {
    if (i % 3 < 2) training.feed(i * kBatch);
    training.step->run();
    curve.push_back(training.step->output(0)[0]);
  }
  return curve;
}

TEST(Device, TrainsAsTheHostRecordedOrNot) {
  OnHost host;
  OnDevice recorded, eager(op::OptimizerKind::adam, false);
  const std::vector<float> expected = losses(host);
  EXPECT_EQ(losses(recorded), expected);
  EXPECT_EQ(recorded.device().graphs(), 1);
  EXPECT_EQ(losses(eager), expected);
  EXPECT_EQ(recorded.values(), host.values());
  EXPECT_EQ(eager.values(), host.values());
}

TEST(Device, StepsFollowEachOtherWithoutWaiting) {
  OnHost host;
  OnDevice device;
  for (SmallTraining* training : {static_cast<SmallTraining*>(&host), static_cast<SmallTraining*>(&device)}) {
    training->feed(0);
    for (int i = 0; i < 5; ++i) training->step->run();
  }
  EXPECT_EQ(device.values(), host.values());
}

// The device is as late as it may be: the next batch is there before the step that it must not disturb has begun.
TEST(Device, TheNextBatchComesDuringAStep) {
  OnHost host;
  const std::vector<float> expected = losses(host);
  for (const bool records : {true, false}) {
    OnDevice device(op::OptimizerKind::adam, records);
    std::vector<float> curve;
    device.feed(0);
    for (int i = 0; i < 8; ++i) {
      device.step->run();
      if ((i + 1) % 3 < 2) {
        device.feed((i + 1) * kBatch);
        device.step->send_inputs();
      }
      EXPECT_GE(device.step->wait(), 0);
      curve.push_back(device.step->output(0)[0]);
    }
    EXPECT_EQ(curve, expected);
    EXPECT_EQ(device.values(), host.values());
  }
}

TEST(Device, ABatchThatIsReplacedBeforeItsStepIsNotSeen) {
  OnHost host;
  OnDevice device;
  const std::vector<float> expected = losses(host, 2);
  device.feed(0);
  device.step->run();
  device.feed(9 * kBatch);
  device.step->send_inputs();
  device.feed(kBatch);
  EXPECT_EQ(device.step->output(0)[0], expected[0]);
  device.step->run();
  EXPECT_EQ(device.step->output(0)[0], expected[1]);
}

TEST(Device, VariablesAreReadAndSetBetweenSteps) {
  OnHost host;
  OnDevice device;
  losses(host, 3);
  losses(device, 3);
  for (const NodeId id : host.store().trainable()) {
    HostTensor value = host.store().get(id);
    for (float& element : value.f32()) element *= 0.5f;
    host.store().set(id, value);
    device.store().set(id, value);
  }
  EXPECT_EQ(losses(device), losses(host));
}

TEST(Device, AProfileCountsEveryInstruction) {
  OnDevice device;
  device.step->enable_profile();
  losses(device, 2);
  EXPECT_EQ(device.step->profile().runs, 2);
  OnHost host;
  losses(host, 2);
  EXPECT_EQ(device.values(), host.values());
}

TEST(Device, TrainingGoesOnFromACheckpointOfTheHostAndBack) {
  const testkit::TemporaryFolder folder;
  OnHost host, host_again;
  OnDevice device;
  losses(host, 3);
  train::write_checkpoint(train::take_checkpoint(host.store(), {.step = 3}), folder / "host.safetensors");
  train::CheckpointFile(folder / "host.safetensors").restore(device.store());
  EXPECT_EQ(losses(device), losses(host));
  train::write_checkpoint(train::take_checkpoint(device.store(), {.step = 11}), folder / "device.safetensors");
  train::CheckpointFile(folder / "device.safetensors").restore(host_again.store());
  EXPECT_EQ(losses(host_again), losses(host));
}

TEST(Device, AveragesFollowTheValues) {
  OnHost host;
  OnDevice device;
  train::WeightAverages of_host(host.store(), 0.9), of_device(device.store(), 0.9);
  for (int i = 0; i < 3; ++i) {
    host.run(i);
    of_host.update();
    device.run(i);
    of_device.update();
  }
  for (const NodeId id : host.store().all()) {
    const HostTensor a = of_device.get(id), b = of_host.get(id);
    EXPECT_TRUE(std::equal(a.f32().begin(), a.f32().end(), b.f32().begin()));
  }
}

class TransformOnDevice : public testing::TestWithParam<std::tuple<GradientOptions, bool>> {};

TEST_P(TransformOnDevice, TrainsAsOnTheHost) {
  const auto& [options, profiled] = GetParam();
  OnHost host(op::OptimizerKind::momentum);
  OnDevice device(op::OptimizerKind::momentum);
  host.step->set_exchange(nullptr, options);
  device.step->set_exchange(nullptr, options);
  if (profiled) device.step->enable_profile();
  EXPECT_EQ(losses(device, 12), losses(host, 12));
  EXPECT_EQ(device.values(), host.values());
  EXPECT_EQ(device.store().step, host.store().step);
  // And back to updates without it.
  host.step->set_exchange(nullptr, {});
  device.step->set_exchange(nullptr, {});
  EXPECT_EQ(losses(device), losses(host));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransformOnDevice,
                         testing::Combine(testing::Values(GradientOptions{}, GradientOptions{.accumulate = 3},
                                                          GradientOptions{.clip_norm = 0.1},
                                                          GradientOptions{
                                                              .lars = Lars{.coefficient = 0.02, .weight_decay = 0.1}},
                                                          GradientOptions{.accumulate = 2, .clip_norm = 0.1}),
                                          testing::Bool()));

// The host works on gradients: it sends the next batch before it waits for the first of them, once in every run.
TEST(Device, TheNextBatchComesDuringAnExchangeThroughTheHost) {
  const GradientOptions options{.accumulate = 2, .clip_norm = 0.1};
  OnHost host;
  host.step->set_exchange(nullptr, options);
  std::vector<float> expected, curve;
  for (int i = 0; i < 8; ++i) {
    host.feed(i * kBatch);
    host.step->run();
    expected.push_back(host.step->output(0)[0]);
  }
  OnDevice device;
  device.step->set_exchange(nullptr, options);
  int runs = 0, sent = 0;
  device.step->set_beside([&] {
    EXPECT_EQ(sent, runs);
    device.feed(++sent * kBatch);
    device.step->send_inputs();
  });
  device.feed(0);
  for (; runs < 8; ++runs) {
    device.step->run();
    curve.push_back(device.step->output(0)[0]);
  }
  EXPECT_EQ(sent, 8);
  EXPECT_EQ(curve, expected);
  EXPECT_EQ(device.values(), host.values());
}

// A program that uses a variable after its update: what follows waits for the exchange.
TEST(Device, WhatFollowsAnUpdateFindsItDone) {
  const auto run = [](std::shared_ptr<Backend> backend) {
    Graph graph;
    const Tensor x = placeholder(graph, {1, 3}, "x");
    const Tensor w = variable(graph, {2, 3}, op::Initializer::constant(1), "w");
    const Tensor copied = variable(graph, {2, 3}, op::Initializer::constant(0), "copied", false);
    std::vector<Tensor> fetches =
        minimize(reduce_mean(square(fully_connected(x, w))), optimizer_rule(op::OptimizerKind::sgd), 0.1f);
    fetches.push_back(graph.add(op::Assign{}, {copied, square(w)}));
    fetches.push_back(w);
    Session session(graph, *backend);
    Executable& step = session.prepare(fetches);
    step.set_exchange(nullptr, {.clip_norm = 1e6});
    step.feed(x, HostTensor({1, 3}, std::vector<float>{1, 2, 3}));
    std::vector<float> seen;
    for (int i = 0; i < 4; ++i) {
      step.run();
      const auto fetched = step.output(static_cast<int>(fetches.size()) - 1);
      seen.insert(seen.end(), fetched.begin(), fetched.end());
      const HostTensor copy = session.value(copied);
      seen.insert(seen.end(), copy.f32().begin(), copy.f32().end());
    }
    return seen;
  };
  EXPECT_EQ(run(std::make_unique<ApartBackend>()), run(make_backend("reference")));
}

}  // namespace
}  // namespace trireme
