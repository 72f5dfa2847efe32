#include "trireme/parallel/replicas.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "tests/support/apart_device.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/all_reduce_sync.hpp"
#include "trireme/parallel/device_sync.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::parallel {
namespace {

constexpr std::int64_t kBatch = 12;  // of all replicas together

using Values = std::vector<std::pair<std::string, HostTensor>>;

struct Job {
  std::string model = "mnist";
  ReplicaOptions options = {};
  std::int64_t bucket_bytes = 64 << 10;  // several buckets
  op::OptimizerKind optimizer = op::OptimizerKind::momentum;
  int steps = 20;
  std::string backend = {};                            // empty: the default one
  std::shared_ptr<testkit::GroupHall> hall = nullptr;  // devices of their own that sum without their hosts
};

std::shared_ptr<Backend> make_backend_in(const std::shared_ptr<testkit::GroupHall>& hall) {
  return std::make_unique<testkit::ApartBackend>(testkit::ApartDevice::Options{.hall = hall});
}

std::unique_ptr<Replicas> make_replicas(comm::Communicator& world, const Backend& backend,
                                        const ReplicaOptions& options) {
  if (!backend.device().has_groups()) return std::make_unique<Replicas>(world, options);
  return std::make_unique<Replicas>(world, std::make_unique<DeviceSync>(world, backend.device()), options);
}

// Where kernels are slow: a convolution, pooling, one layer.
Model small_network(Graph& graph, std::int64_t batch) {
  Model model;
  model.images = placeholder(graph, {batch, 2, 8, 8}, "images");
  model.labels = placeholder(graph, {batch}, "labels", DataType::i32);
  LayerBuilder layers(graph);
  Tensor x = layers.convolution(model.images, {.channels = 8, .kernel = {3, 3}});
  x = layers.pool(x, {.kernel = 2, .stride = 2});
  model.loss = softmax_cross_entropy(layers.fully_connected(x, 5, false, "logits"), model.labels);
  return model;
}

Model build(Graph& graph, const Job& job, std::int64_t share, int ranks) {
  if (job.model == "small") return small_network(graph, share);
  return build_model(graph, job.model,
                     {.batch_size = share, .groups = job.options.sync_batch_norm ? ranks : 1, .num_classes = 5});
}

// Each rank holds about as much as the others, and all together what one would.
void expect_a_share_of_the_state(Replicas& replicas, Session& session) {
  if (replicas.size() == 1) return;
  const OptimizerShard* const shard = dynamic_cast<AllReduceSync&>(replicas.sync()).shard();
  std::int64_t whole = 0, slices = 0;
  for (const GradientBucket& bucket : replicas.sync().buckets()) {
    whole += static_cast<std::int64_t>(bucket.states.size()) * bucket.bytes();
    slices += static_cast<std::int64_t>(bucket.states.size() * bucket.parts.size());
  }
  const auto most = static_cast<std::int64_t>(sizeof(float)) * slices;  // by which shares may differ
  EXPECT_NEAR(static_cast<double>(shard->bytes()), static_cast<double>(whole) / replicas.size(),
              static_cast<double>(most));
  replicas.sync().pull_state();
  double sum = 0;
  for (const NodeId id : session.variables().trainable()) {
    for (int index = 0; index < session.variables().state_count(id); ++index) {
      const HostTensor state = session.variables().get_state(id, index);
      for (const float value : state.f32()) sum += std::abs(value);
    }
  }
  if (replicas.rank() == 0) {
    EXPECT_EQ(sum > 0, whole > 0);
  }
  replicas.sync().drop_state();
}

// Trains this rank's share of a batch, the same batch for every number of ranks, and returns the variables.
Values train_rank(const Job& job, comm::Communicator& world) {
  omp_set_num_threads(1);  // the ranks are threads already
  const int size = world.size();
  const std::int64_t share = kBatch / size, first = world.rank() * share;
  Graph graph;
  const Model model = build(graph, job, share, size);
  std::vector<Tensor> fetches{model.loss};
  for (const Tensor& update : minimize(model.loss, optimizer_rule(job.optimizer), 0.01f)) fetches.push_back(update);
  const auto backend = job.hall == nullptr ? testkit::make_test_backend(job.backend) : make_backend_in(job.hall);
  auto owned = make_replicas(world, *backend, job.options);
  Replicas& replicas = *owned;
  SessionOptions options{.seed = 7};
  options.compile.update_bytes = job.bucket_bytes;
  replicas.configure(graph, options);
  Session session(graph, *backend, options);
  Executable& step = session.prepare(fetches);
  // A rank that starts from other values: those of rank 0 must win.
  for (const NodeId id : session.variables().trainable()) {
    if (world.rank() > 0) session.variables().set(id, HostTensor(graph.node(id).outputs[0]));
  }
  replicas.attach(session, step);

  const std::int64_t pixels = model.images.shape().elements() / share;
  std::vector<float> images(kBatch * pixels);
  fill_truncated_normal(images, 0.0f, 1.0f, random_key(3, "images"));
  std::copy_n(images.begin() + first * pixels, share * pixels, step.input_f32(model.images).begin());
  for (std::int64_t i = 0; i < share; ++i) {
    step.input_i32(model.labels)[i] = static_cast<std::int32_t>((first + i) % 5);
  }
  step.sample_offset = first;
  for (int i = 0; i < job.steps; ++i) step.run();
  replicas.check_agreement(session);
  if (job.options.shard_optimizer) expect_a_share_of_the_state(replicas, session);
  Values values;
  for (const NodeId id : session.variables().trainable()) {
    values.emplace_back(graph.node(id).name, session.variables().get(id));
  }
  // Replicas may go before the session.
  step.forget_exchange();
  owned.reset();
  return values;
}

Values train(const Job& job, int ranks, int ranks_per_node = 0) {
  Values of_first;
  comm::run_local({.size = ranks, .ranks_per_node = ranks_per_node}, [&](comm::Communicator& world) {
    Values values = train_rank(job, world);
    if (world.rank() == 0) of_first = std::move(values);
  });
  return of_first;
}

void expect_close(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t v = 0; v < actual.size(); ++v) {
    const auto a = actual[v].second.f32(), e = expected[v].second.f32();
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - e[i], 2);
      size += std::pow(static_cast<double>(e[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size) + 1e-6) << actual[v].first;
  }
}

struct Case {
  const char* name;
  comm::Algorithm algorithm;
  bool overlap;
  int ranks_per_node;
};

class ReplicasTest : public testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(ReplicasTest, TrainLikeOneWithTheWholeBatch) {
  const auto& [how, ranks] = GetParam();
  Job job;
  job.options.all_reduce.algorithm = how.algorithm;
  job.options.overlap = how.overlap;
  static const Values alone = train({}, 1);
  expect_close(train(job, ranks, how.ranks_per_node), alone, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, ReplicasTest,
    testing::Combine(testing::Values(Case{"automatic", comm::Algorithm::automatic, true, 0},
                                     Case{"without_overlap", comm::Algorithm::automatic, false, 0},
                                     Case{"ring", comm::Algorithm::ring, true, 0},
                                     Case{"halving_doubling", comm::Algorithm::halving_doubling, true, 0},
                                     Case{"tree", comm::Algorithm::tree, false, 0},
                                     Case{"hierarchical", comm::Algorithm::hierarchical, true, 0},
                                     Case{"two_per_node", comm::Algorithm::hierarchical, true, 2}),
                     testing::Values(1, 2, 3, 4)),
    [](const auto& each) {
      return std::string(std::get<0>(each.param).name) + "_" + std::to_string(std::get<1>(each.param));
    });

class SyncBatchNormTest : public testing::TestWithParam<int> {};

TEST_P(SyncBatchNormTest, TrainsLikeOneWithTheWholeBatch) {
  if (backend_names().front() == "reference") GTEST_SKIP() << "needs a backend that shares statistics";
  Job job{.model = "resnet20"};
  job.options.sync_batch_norm = true;
  expect_close(train(job, GetParam()), train(job, 1), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SyncBatchNormTest, testing::Values(2, 3, 4));

void expect_equal(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t v = 0; v < actual.size(); ++v) {
    EXPECT_TRUE(std::ranges::equal(actual[v].second.f32(), expected[v].second.f32())) << actual[v].first;
  }
}

struct ShardCase {
  op::OptimizerKind optimizer;
  Case how;
};

class ShardedReplicas : public testing::TestWithParam<std::tuple<ShardCase, int>> {};

TEST_P(ShardedReplicas, TrainToTheSameBits) {
  if (backend_names().front() == "reference") GTEST_SKIP() << "it updates in double precision";
  const auto& [with, ranks] = GetParam();
  Job job{.optimizer = with.optimizer, .steps = 5};
  job.options.all_reduce.algorithm = with.how.algorithm;
  job.options.overlap = with.how.overlap;
  const Values whole = train(job, ranks, with.how.ranks_per_node);
  job.options.shard_optimizer = true;
  expect_equal(train(job, ranks, with.how.ranks_per_node), whole);
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ShardedReplicas,
    testing::Combine(
        testing::Values(ShardCase{op::OptimizerKind::sgd, {"ring", comm::Algorithm::ring, true, 0}},
                        ShardCase{op::OptimizerKind::momentum, {"automatic", comm::Algorithm::automatic, true, 0}},
                        ShardCase{op::OptimizerKind::momentum, {"ring", comm::Algorithm::ring, true, 0}},
                        ShardCase{op::OptimizerKind::nesterov, {"tree", comm::Algorithm::tree, true, 0}},
                        ShardCase{op::OptimizerKind::rmsprop, {"halving", comm::Algorithm::halving_doubling, true, 0}},
                        ShardCase{op::OptimizerKind::adam, {"ring_later", comm::Algorithm::ring, false, 0}},
                        ShardCase{op::OptimizerKind::adamw, {"nodes", comm::Algorithm::hierarchical, true, 2}},
                        ShardCase{op::OptimizerKind::lion, {"node", comm::Algorithm::hierarchical, true, 0}}),
        testing::Values(1, 2, 3, 4)),
    [](const auto& each) {
      const ShardCase& with = std::get<0>(each.param);
      return std::string(op::to_string(with.optimizer)) + "_" + with.how.name + "_" +
             std::to_string(std::get<1>(each.param));
    });

// Several steps, so that some are recorded; the optimizer's count of steps matters.
Job job_on(const std::string& backend) {
  Job job;
  job.backend = backend;
  job.model = "small";
  job.optimizer = op::OptimizerKind::adam;
  job.bucket_bytes = 1 << 10;
  job.steps = 6;
  return job;
}

class ReplicasOnDevices : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(ReplicasOnDevices, TrainAsOnHosts) {
  const auto [ranks, overlap] = GetParam();
  Job on_device = job_on("apart"), on_host = job_on("reference");
  on_device.options.overlap = on_host.options.overlap = overlap;
  expect_equal(train(on_device, ranks), train(on_host, ranks));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReplicasOnDevices, testing::Combine(testing::Values(1, 2, 3), testing::Bool()));

class DeviceGroups : public testing::TestWithParam<int> {};

TEST_P(DeviceGroups, TrainLikeOneWithTheWholeBatch) {
  Job job = job_on("apart");
  job.optimizer = op::OptimizerKind::momentum;
  const Values alone = train(job, 1);
  job.hall = std::make_shared<testkit::GroupHall>();
  expect_close(train(job, GetParam()), alone, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceGroups, testing::Values(1, 2, 3));

TEST(Replicas, RepeatToTheBit) {
  const Job job;
  const Values once = train(job, 3), again = train(job, 3);
  expect_equal(again, once);
}

// w starts at 0 and the gradient of w is the mean of x: one step of rate 1 leaves the negative mean.
struct TinyStep {
  explicit TinyStep(comm::Communicator& world, std::shared_ptr<Backend> on = make_backend("reference"),
                    const ReplicaOptions& options = {})
      : backend(std::move(on)),
        owned(make_replicas(world, *backend, options)),
        session(graph, *backend, configured()),
        step(session.prepare(fetches)) {
    replicas.attach(session, step);
  }
  SessionOptions configured() {
    SessionOptions options;
    replicas.configure(graph, options);
    return options;
  }

  Graph graph;
  Tensor x = placeholder(graph, {1, 1}, "x");
  Tensor w = variable(graph, {1, 1}, op::Initializer::constant(0), "w");
  std::vector<Tensor> fetches =
      minimize(reduce_mean(fully_connected(x, w)), optimizer_rule(op::OptimizerKind::sgd), 1.0f);
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Replicas> owned;
  Replicas& replicas = *owned;
  Session session;
  Executable& step;
};

float step_on(comm::Communicator& world, float x_value, float weight,
              std::shared_ptr<Backend> backend = make_backend("reference"), const ReplicaOptions& options = {}) {
  TinyStep tiny(world, std::move(backend), options);
  tiny.step.input_f32(tiny.x)[0] = x_value;
  tiny.replicas.sync().set_weight(weight);
  tiny.replicas.sync().set_vote(x_value);
  tiny.step.run();
  EXPECT_EQ(tiny.replicas.sync().agreed(), 1 + 2 + 6);
  return tiny.session.value(tiny.w).f32()[0];
}

TEST(Replicas, AverageGradientsAndSumVotes) {
  comm::run_local(3, [](comm::Communicator& world) {
    const float x = world.rank() == 2 ? 6.0f : static_cast<float>(world.rank() + 1);
    EXPECT_FLOAT_EQ(step_on(world, x, 1), -3.0f);
  });
}

TEST(Replicas, ARankWithoutSamplesDoesNotCount) {
  comm::run_local(3, [](comm::Communicator& world) {
    const float x = world.rank() == 2 ? 6.0f : static_cast<float>(world.rank() + 1);
    EXPECT_FLOAT_EQ(step_on(world, x, world.rank() == 2 ? 0.0f : 1.5f), -1.5f);
  });
}

// With fewer elements than ranks, most slices are empty.
TEST(Replicas, WithSlicesCountWeightsAndVotesAlike) {
  comm::run_local(3, [](comm::Communicator& world) {
    const float x = world.rank() == 2 ? 6.0f : static_cast<float>(world.rank() + 1);
    EXPECT_FLOAT_EQ(step_on(world, x, world.rank() == 2 ? 0.0f : 1.5f, make_backend("reference"),
                            {.all_reduce = {.algorithm = comm::Algorithm::ring}, .shard_optimizer = true}),
                    -1.5f);
  });
}

TEST(DeviceSync, WeightsAndVotesGoWithEachStep) {
  const auto hall = std::make_shared<testkit::GroupHall>();
  comm::run_local(3, [&](comm::Communicator& world) {
    const float x = world.rank() == 2 ? 6.0f : static_cast<float>(world.rank() + 1);
    EXPECT_FLOAT_EQ(step_on(world, x, world.rank() == 2 ? 0.0f : 1.5f, make_backend_in(hall)), -1.5f);
    TinyStep tiny(world, make_backend_in(hall));
    for (int i = 1; i < 4; ++i) {  // recorded from the second on
      tiny.replicas.sync().set_vote(static_cast<float>(i));
      tiny.step.run();
      EXPECT_EQ(tiny.replicas.sync().agreed(), static_cast<float>(3 * i));
    }
  });
}

TEST(Replicas, ValuesThatDifferAreFoundAndNamed) {
  try {
    comm::run_local(2, [](comm::Communicator& world) {
      Graph graph;
      const Tensor w = variable(graph, {2}, op::Initializer::constant(0), "layer/w");
      const auto backend = make_backend("reference");
      Replicas replicas(world);
      Session session(graph, *backend);
      session.run({w});
      if (world.rank() == 1) session.assign(w, HostTensor(Shape{2}, std::vector<float>{0, 1e-30f}));
      replicas.check_agreement(session);
    });
    FAIL() << "nothing was found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'layer/w' is not the same on rank 1"), std::string::npos) << error.what();
  }
}

TEST(Replicas, DifferentProgramsAreRefused) {
  try {
    comm::run_local(2, [](comm::Communicator& world) {
      Graph graph;
      const Tensor x = placeholder(graph, {1, 1}, "x");
      const Tensor w = variable(graph, {world.rank() + 1, 1}, op::Initializer::constant(0), "w");
      const std::vector<Tensor> fetches =
          minimize(reduce_mean(fully_connected(x, w)), optimizer_rule(op::OptimizerKind::sgd), 1.0f);
      const auto backend = make_backend("reference");
      Replicas replicas(world);
      Session session(graph, *backend);
      replicas.attach(session, session.prepare(fetches));
    });
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("different programs"), std::string::npos) << error.what();
  }
}

TEST(Replicas, ARankThatIsGoneEndsTheWait) {
  const auto train_and_leave = [](comm::Communicator& world) {
    TinyStep tiny(world);
    tiny.step.run();
    if (world.rank() == 1) fail(ErrorKind::failed, "out of paper");
    tiny.step.run();
  };
  try {
    comm::run_local(2, train_and_leave);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("out of paper"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace trireme::parallel
