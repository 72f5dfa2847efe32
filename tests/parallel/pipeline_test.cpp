// Pipelines against one process that accumulates the same micro-batches: equal to the bit.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/support/apart_device.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/device_link.hpp"
#include "trireme/parallel/pipeline_link.hpp"
#include "trireme/parallel/staged_link.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/plan/stages.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::parallel {
namespace {

struct Work {
  std::string model = "resnet20";
  std::int64_t micro_batch = 1;
  int micro_batches = 12;
  int steps = 3;
  Recompute recompute = Recompute::none;
  std::string backend = {};                            // by name; the default one
  std::shared_ptr<testkit::GroupHall> hall = nullptr;  // of simulated devices that exchange without their hosts
};

// Kernels chosen by timing would differ between stages that time by themselves.
std::shared_ptr<Backend> backend_of(const Work& work) {
  if (work.hall) return std::make_unique<testkit::ApartBackend>(testkit::ApartDevice::Options{.hall = work.hall});
  return testkit::make_test_backend(work.backend, {.autotune = Autotune::off});
}

struct Built {
  Graph graph;
  Model model;
  std::vector<Tensor> fetches;
  Tensor rate;

  explicit Built(const Work& work) {
    model = build_model(graph, work.model, {.batch_size = work.micro_batch, .num_classes = 7});
    rate = placeholder(graph, {}, "learning_rate");
    fetches = {model.loss};
    for (const Tensor& update : minimize(model.loss, optimizer_rule(op::OptimizerKind::momentum), rate)) {
      fetches.push_back(update);
    }
  }
};

std::vector<float> images_of(const Built& built, const Work& work, int step) {
  std::vector<float> images(static_cast<std::size_t>(built.model.images.shape().elements() * work.micro_batches));
  fill_truncated_normal(images, 0.0f, 1.0f, random_key(static_cast<std::uint64_t>(step), "images"));
  return images;
}

std::int32_t label_of(std::int64_t sample, int step) { return static_cast<std::int32_t>((sample * 3 + step) % 7); }

using Variables = std::map<std::string, HostTensor>;

struct Result {
  Variables values;  // of variables
  std::vector<float> losses;
};

Variables values_of(Session& session) {
  Variables values;
  for (const NodeId id : session.variables().all()) {
    values.emplace(session.variables().node(id).name, session.variables().get(id));
  }
  return values;
}

Result one_process(const Work& work) {
  omp_set_num_threads(1);
  Built built(work);
  const auto backend = backend_of(work);
  SessionOptions options{.seed = 7};
  options.compile.recompute = work.recompute;
  Session session(built.graph, *backend, options);
  Executable& step = session.prepare(built.fetches);
  step.set_exchange(nullptr, {.accumulate = work.micro_batches});
  Result result;
  for (int s = 0; s < work.steps; ++s) {
    const std::vector<float> images = images_of(built, work, s);
    const std::int64_t pixels = built.model.images.shape().elements();
    float loss = 0;
    for (int m = 0; m < work.micro_batches; ++m) {
      std::copy_n(images.begin() + m * pixels, pixels, step.input_f32(built.model.images).begin());
      for (std::int64_t i = 0; i < work.micro_batch; ++i) {
        step.input_i32(built.model.labels)[static_cast<std::size_t>(i)] = label_of(m * work.micro_batch + i, s);
      }
      step.input_f32(built.rate)[0] = 0.01f;
      step.sample_offset = m * work.micro_batch;
      step.run();
      loss += step.output(0)[0];
    }
    result.losses.push_back(loss);
  }
  result.values = values_of(session);
  return result;
}

StageOptions stages_of(const Work& work, PipelineKind kind, std::vector<int> replicas) {
  const int chunks = default_chunks(kind), stages = static_cast<int>(replicas.size());
  Built built(work);
  const auto backend = backend_of(work);
  return {
      .cuts = choose_cuts(built.graph, built.fetches, *backend, stages * chunks),
      .order = make_pipeline_order(
          kind,
          {.stages = stages, .micro_batches = work.micro_batches, .chunks = chunks, .replicas = std::move(replicas)})};
}

std::unique_ptr<StageLink> link_of(const Work& work, comm::Communicator& world, ComputeDevice& device) {
  if (work.hall) return std::make_unique<DeviceLink>(world, device);
  auto link = std::make_unique<PipelineLink>(world, PipelineLink::Options{});
  if (device.is_host()) return link;
  return std::make_unique<StagedLink>(std::move(link), device);
}

void train_stage(const Work& work, StageOptions stages, comm::Communicator& world, Result& result) {
  omp_set_num_threads(1);
  Built built(work);
  const auto backend = backend_of(work);
  SessionOptions options{.seed = 7};
  stages.stage = world.rank();
  options.compile.stages = std::make_shared<const StageOptions>(stages);
  options.compile.recompute = work.recompute;
  const std::unique_ptr<StageLink> link = link_of(work, world, backend->device());
  Session session(built.graph, *backend, options);
  Executable& step = session.prepare(built.fetches);
  step.set_link(link.get());
  for (int s = 0; s < work.steps; ++s) {
    if (step.needs(built.model.images))
      std::ranges::copy(images_of(built, work, s), step.input_f32(built.model.images).begin());
    if (step.needs(built.model.labels)) {
      const std::span<std::int32_t> labels = step.input_i32(built.model.labels);
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = label_of(static_cast<std::int64_t>(i), s);
    }
    if (step.needs(built.rate)) step.input_f32(built.rate)[0] = 0.01f;
    step.run();
    step.wait();
    float loss = 0;
    const int fetches = static_cast<int>(std::ssize(built.fetches));
    for (int m = 0; m < work.micro_batches; ++m) {
      if (const auto value = step.output(m * fetches); !value.empty()) loss += value[0];
    }
    if (world.rank() == world.size() - 1) result.losses.push_back(loss);
  }
  result.values = values_of(session);
}

Result pipeline(const Work& work, PipelineKind kind, int stages) {
  const StageOptions options = stages_of(work, kind, std::vector<int>(static_cast<std::size_t>(stages), 1));
  std::vector<Result> results(static_cast<std::size_t>(stages));
  comm::run_local(stages, [&](comm::Communicator& world) {
    train_stage(work, options, world, results[static_cast<std::size_t>(world.rank())]);
  });
  Result all;
  for (Result& each : results) {
    EXPECT_FALSE(each.values.empty());
    if (!each.losses.empty()) all.losses = each.losses;
    for (auto& value : each.values) EXPECT_TRUE(all.values.insert(value).second) << value.first;
  }
  return all;
}

void expect_equal(const Result& pipeline, const Result& alone, std::string_view what) {
  EXPECT_EQ(pipeline.losses, alone.losses) << what;
  ASSERT_EQ(pipeline.values.size(), alone.values.size()) << what;
  for (const auto& [name, value] : alone.values) {
    ASSERT_TRUE(pipeline.values.contains(name)) << what << " " << name;
    EXPECT_TRUE(std::ranges::equal(pipeline.values.at(name).f32(), value.f32())) << what << " " << name;
  }
}

constexpr std::array kAllKinds{PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::interleaved,
                               PipelineKind::zero_bubble};

class Pipeline : public testing::TestWithParam<const char*> {};

TEST_P(Pipeline, GivesTheSameBitsAsOneProcess) {
  const Work work{.model = GetParam()};
  const Result alone = one_process(work);
  for (const PipelineKind kind : kAllKinds) {
    for (const int stages : {2, 3, 4}) {
      const std::string what = std::string(to_string(kind)) + ", " + std::to_string(stages) + " stages";
      if (work.model == "mnist" && stages * default_chunks(kind) > 7) continue;  // more parts than operations
      expect_equal(pipeline(work, kind, stages), alone, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Pipeline,
                         testing::Values("mnist", "resnet20", "resnet29_v2", "amoebanet_d_3_16@64"));

TEST(RecomputingPipeline, GivesTheSameBitsAsOneProcess) {
  for (const Recompute recompute : {Recompute::cheap, Recompute::full}) {
    const Work work{.model = "resnet29_v2", .recompute = recompute};
    const Result alone = one_process(work);
    for (const PipelineKind kind : {PipelineKind::one_forward, PipelineKind::interleaved, PipelineKind::zero_bubble})
      expect_equal(pipeline(work, kind, 3), alone,
                   std::string(to_string(kind)) + ", " + std::string(to_string(recompute)));
  }
}

// On the simulated device, or on the GPU that all stages share if TRIREME_TESTED_BACKEND is cuda.
TEST(PipelineOnDevices, GivesTheSameBitsAsOneProcess) {
  const char* const named = std::getenv("TRIREME_TESTED_BACKEND");
  if (named != nullptr && std::ranges::count(backend_names(), named) == 0) GTEST_SKIP() << "there is no " << named;
  Work work{.model = "mnist", .micro_batches = 4, .backend = named == nullptr ? "apart" : named};
  const Result alone = one_process(work);
  for (const PipelineKind kind : kAllKinds) {
    expect_equal(pipeline(work, kind, 2), alone, to_string(kind));
  }
  work.model = "resnet20";
  expect_equal(pipeline(work, PipelineKind::one_forward, 3), one_process(work), "three stages");
}

TEST(PipelineBetweenDevices, GivesTheSameBitsAsOneProcess) {
  const auto hall = std::make_shared<testkit::GroupHall>();
  Work work{.model = "mnist", .micro_batches = 4, .backend = "apart"};
  const Result alone = one_process(work);
  work.hall = hall;
  for (const PipelineKind kind : {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::zero_bubble}) {
    expect_equal(pipeline(work, kind, 2), alone, to_string(kind));
  }
  Work deep{.micro_batches = 4, .backend = "apart"};
  const Result deep_alone = one_process(deep);
  deep.hall = hall;
  expect_equal(pipeline(deep, PipelineKind::one_forward, 3), deep_alone, "three stages");
}

// Branches, and matrices that hold most of the variables.
class LargePipeline : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(LargePipeline, GivesTheSameBitsAsOneProcess) {
  const auto& [model, stages] = GetParam();
  const Work work{.model = model, .micro_batches = stages == 3 ? 3 : 4, .steps = 1};  // interleaved takes multiples
  const Result alone = one_process(work);
  for (const PipelineKind kind : kAllKinds) {
    if (work.model == "vgg11" && static_cast<int>(kind) % 3 != stages - 2) continue;  // it takes long: each kind once
    expect_equal(pipeline(work, kind, stages), alone, to_string(kind));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LargePipeline,
                         testing::Combine(testing::Values("googlenet", "vgg11"), testing::Values(2, 3, 4)));

}  // namespace
}  // namespace trireme::parallel
