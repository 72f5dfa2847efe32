// Workers and servers as threads: every mode, placement and number of tasks trains like one process with the whole
// batch. Over real processes and the other data planes: tests/distributed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/apart_device.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/replicas.hpp"
#include "trireme/ps/server.hpp"
#include "trireme/ps/worker_sync.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::ps {
namespace {

constexpr std::int64_t kBatch = 12;  // of all workers together

using Values = std::vector<std::pair<std::string, HostTensor>>;

struct Job {
  int workers = 1, servers = 1;
  WorkerOptions options = {};
  std::string model = "small";
  bool sync_batch_norm = false;
  op::OptimizerKind optimizer = op::OptimizerKind::momentum;
  float learning_rate = 0.01f;
  int steps = 20;
  GradientOptions gradients = {};
  std::function<void(int worker, int step)> before_step = {};
  std::string goes_on_from = {}, ends_with = {};  // checkpoints
  std::string backend = {};                       // empty: the default one
};

Job tasks(int workers, int servers) {
  Job job;
  job.workers = workers;
  job.servers = servers;
  return job;
}

struct Outcome {
  Values values;
  std::vector<double> losses;            // of worker 0
  std::vector<nlohmann::json> counters;  // [server]
};

// A convex problem.
Model logistic_regression(Graph& graph, std::int64_t batch) {
  Model model;
  model.images = placeholder(graph, {batch, 40}, "points");
  model.labels = placeholder(graph, {batch}, "labels", DataType::i32);
  const Tensor weights = variable(graph, {5, 40}, op::Initializer::constant(0), "weights");
  model.loss = softmax_cross_entropy(fully_connected(model.images, weights), model.labels);
  return model;
}

// A small convolutional network: two layers with biases, of which one is large enough to be cut.
Model small_network(Graph& graph, std::int64_t batch) {
  const auto weights = [&](Shape shape, const char* name) {
    return variable(graph, std::move(shape), op::Initializer::truncated_normal(0.1f), name);
  };
  const auto bias = [&](std::int64_t size, const char* name) {
    return variable(graph, {size}, op::Initializer::constant(0), name);
  };
  Model model;
  model.images = placeholder(graph, {batch, 1, 10, 10}, "images");
  model.labels = placeholder(graph, {batch}, "labels", DataType::i32);
  Tensor x = relu(convolution_bias(model.images, weights({16, 1, 3, 3}, "conv/weights"), bias(16, "conv/bias")));
  x = relu(fully_connected_bias(flatten(x), weights({48, 16 * 8 * 8}, "hidden/weights"), bias(48, "hidden/bias")));
  const Tensor logits = fully_connected_bias(x, weights({5, 48}, "out/weights"), bias(5, "out/bias"));
  model.loss = softmax_cross_entropy(logits, model.labels);
  return model;
}

Model build(Graph& graph, const Job& job, std::int64_t batch) {
  if (job.model == "convex") return logistic_regression(graph, batch);
  if (job.model == "small") return small_network(graph, batch);
  return build_model(graph, job.model,
                     {.batch_size = batch, .groups = job.sync_batch_norm ? job.workers : 1, .num_classes = 5});
}

class WorkerRun {
 public:
  WorkerRun(const Job& job, comm::Communicator& all, comm::Communicator& workers)
      : job_(job),
        rank_(workers.rank()),
        share_(kBatch / job.workers),
        model_(build(graph_, job, share_)),
        replicas_(
            std::make_unique<parallel::Replicas>(workers, std::make_unique<WorkerSync>(all, job.workers, job.options),
                                                 parallel::ReplicaOptions{.sync_batch_norm = job.sync_batch_norm})) {
    omp_set_num_threads(1);  // the ranks are threads already
    std::vector<Tensor> fetches{model_.loss};
    for (const Tensor& update : minimize(model_.loss, optimizer_rule(job.optimizer), job.learning_rate)) {
      fetches.push_back(update);
    }
    SessionOptions options{.seed = 7};
    options.compile.update_bytes = 4 << 10;  // several buckets
    replicas_->configure(graph_, options);
    session_ = std::make_unique<Session>(graph_, *backend_, options);
    step_ = &session_->prepare(fetches);
    // A worker that starts from other values: those of worker 0 must win.
    for (const NodeId id : session_->variables().trainable()) {
      if (rank_ > 0) session_->variables().set(id, HostTensor(graph_.node(id).outputs[0]));
    }
    if (rank_ == 0 && !job.goes_on_from.empty()) train::CheckpointFile(job.goes_on_from).restore(session_->variables());
    replicas_->attach(*session_, *step_);
    if (job.gradients.transforms()) replicas_->exchange_gradients(*step_, job.gradients);
    fill_batch();
  }

  Outcome run(comm::Communicator& workers) {
    Outcome outcome;
    for (int i = 0; i < job_.steps; ++i) {
      if (job_.before_step) job_.before_step(rank_, i);
      step_->run();
      outcome.losses.push_back(step_->output(0)[0]);
    }
    auto& sync = dynamic_cast<WorkerSync&>(replicas_->sync());
    sync.rest();
    comm::barrier(workers);
    replicas_->restore_values(*session_);
    replicas_->check_agreement(*session_);
    for (const NodeId id : session_->variables().trainable()) {
      outcome.values.emplace_back(graph_.node(id).name, session_->variables().get(id));
    }
    if (rank_ == 0 && !job_.ends_with.empty()) {
      sync.pull_state();
      train::write_checkpoint(train::take_checkpoint(session_->variables(), {.step = job_.steps}), job_.ends_with);
    }
    for (const std::string& text : sync.server_statistics()) outcome.counters.push_back(nlohmann::json::parse(text));
    comm::barrier(workers);
    sync.leave();
    return outcome;
  }

 private:
  void fill_batch() {
    const std::int64_t first = rank_ * share_, pixels = model_.images.shape().elements() / share_;
    std::vector<float> images(kBatch * pixels);
    fill_truncated_normal(images, 0.0f, 1.0f, random_key(3, "images"));
    std::copy_n(images.begin() + first * pixels, share_ * pixels, step_->input_f32(model_.images).begin());
    for (std::int64_t i = 0; i < share_; ++i) {
      step_->input_i32(model_.labels)[i] = static_cast<std::int32_t>((first + i) % 5);
    }
    step_->sample_offset = first;
  }

  const Job& job_;
  int rank_;
  std::int64_t share_;
  Graph graph_;
  Model model_;
  std::shared_ptr<Backend> backend_ = testkit::make_test_backend(job_.backend);
  std::unique_ptr<Session> session_;
  std::unique_ptr<parallel::Replicas> replicas_;  // goes before what it writes into
  Executable* step_ = nullptr;
};

Outcome train(const Job& job) {
  Outcome of_first;
  comm::run_local(job.workers + job.servers, [&](comm::Communicator& all) {
    const bool works = all.rank() < job.workers;
    const auto workers = all.split(works ? 0 : -1, all.rank());
    if (!works) return Server(all, job.workers, {.threads = 2}).run();
    WorkerRun run(job, all, *workers);
    Outcome outcome = run.run(*workers);
    if (all.rank() == 0) of_first = std::move(outcome);
  });
  return of_first;
}

Values train_alone(op::OptimizerKind optimizer, const GradientOptions& gradients = {}) {
  Graph graph;
  const Model built = small_network(graph, kBatch);
  std::vector<Tensor> fetches{built.loss};
  for (const Tensor& update : minimize(built.loss, optimizer_rule(optimizer), 0.01f)) fetches.push_back(update);
  const auto backend = make_backend(backend_names().front());
  Session session(graph, *backend, {.seed = 7});
  Executable& step = session.prepare(fetches);
  step.set_exchange(nullptr, gradients);
  fill_truncated_normal(step.input_f32(built.images), 0.0f, 1.0f, random_key(3, "images"));
  for (std::int64_t i = 0; i < kBatch; ++i) {
    step.input_i32(built.labels)[i] = static_cast<std::int32_t>(i % 5);
  }
  for (int i = 0; i < 20; ++i) step.run();
  Values values;
  for (const NodeId id : session.variables().trainable()) {
    values.emplace_back(graph.node(id).name, session.variables().get(id));
  }
  return values;
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

class Synchronous : public testing::TestWithParam<std::tuple<int, int, Strategy, bool>> {};

TEST_P(Synchronous, TrainsLikeOneWithTheWholeBatch) {
  const auto [workers, servers, placement, replicated] = GetParam();
  static const Values alone = train_alone(op::OptimizerKind::momentum);
  Job job = tasks(workers, servers);
  job.options.placement = placement;
  job.options.replicated = replicated;
  job.options.chunk_elements = 5000;  // several per bucket
  const Outcome outcome = train(job);
  expect_close(outcome.values, alone, 1e-4);
  for (const auto& counters : outcome.counters) {
    EXPECT_EQ(counters.at("updates"), counters.at("chunks").get<int>() * job.steps);
    EXPECT_EQ(counters.at("max_staleness"), 0);
    EXPECT_EQ(counters.at("dropped_gradients"), 0);
    EXPECT_EQ(counters.at("bytes_received"),
              counters.at("variable_bytes").get<std::int64_t>() * job.steps * job.workers);
  }
}

std::string case_name(const testing::TestParamInfo<Synchronous::ParamType>& instance) {
  const auto [workers, servers, placement, replicated] = instance.param;
  return fmt::format("{}_workers_{}_servers_{}{}", workers, servers, to_string(placement),
                     replicated ? "_replicated" : "");
}

INSTANTIATE_TEST_SUITE_P(Tasks, Synchronous,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(1, 2, 3),
                                          testing::Values(Strategy::round_robin, Strategy::greedy, Strategy::split),
                                          testing::Bool()),
                         case_name);

void expect_equal(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t v = 0; v < actual.size(); ++v) {
    EXPECT_TRUE(std::ranges::equal(actual[v].second.f32(), expected[v].second.f32())) << actual[v].first;
  }
}

TEST(ParameterServer, WorkersOnDevicesTrainAsOnHosts) {
  for (const bool replicated : {false, true}) {
    for (const bool overlap : {false, true}) {
      Job job = tasks(2, 2);
      job.options.replicated = replicated;
      job.options.overlap = overlap;
      job.optimizer = op::OptimizerKind::adam;
      job.steps = 6;
      job.backend = "reference";
      const Outcome on_hosts = train(job);
      job.backend = "apart";
      const Outcome on_devices = train(job);
      EXPECT_EQ(on_devices.losses, on_hosts.losses);
      expect_equal(on_devices.values, on_hosts.values);
    }
  }
}

TEST(ParameterServer, EveryOptimizerTrainsLikeOneProcess) {
  for (const auto kind : {op::OptimizerKind::sgd, op::OptimizerKind::nesterov, op::OptimizerKind::rmsprop,
                          op::OptimizerKind::adam, op::OptimizerKind::adamw}) {
    SCOPED_TRACE(op::to_string(kind));
    // The first moments of Adam turn rounding errors of small gradients into whole steps.
    Job job = tasks(2, 2);
    job.optimizer = kind;
    expect_close(train(job).values, train_alone(kind), kind >= op::OptimizerKind::adam ? 1e-2 : 1e-4);
  }
}

// An asynchronous update is one worker's, so one worker trains like one process.
TEST(ParameterServer, AsynchronousWorkersClipAndScaleTheirOwnGradients) {
  const GradientOptions clipped{.clip_norm = 0.3};
  const GradientOptions scaled{.lars = Lars{.coefficient = 0.05, .weight_decay = 0.01}};
  for (const GradientOptions& gradients : {clipped, scaled}) {
    Job job = tasks(1, 2);
    job.options.mode = Mode::asynchronous;
    job.options.chunk_elements = 5000;  // no server has all of a gradient
    job.gradients = gradients;
    const Values alone = train_alone(job.optimizer, gradients);
    const Outcome on_host = train(job);
    expect_close(on_host.values, alone, 1e-6);
    job.backend = "reference";
    const Outcome on_reference = train(job);
    job.backend = "apart";
    expect_equal(train(job).values, on_reference.values);
  }
  EXPECT_NE(train_alone(op::OptimizerKind::momentum, clipped)[0].second.f32()[0],
            train_alone(op::OptimizerKind::momentum)[0].second.f32()[0]);
}

// The servers' state is in the checkpoint, and goes to other servers from there, however many they are.
void expect_to_go_on_from_a_checkpoint(const std::string& backend) {
  const testkit::TemporaryFolder folder;
  for (const auto kind : {op::OptimizerKind::momentum, op::OptimizerKind::adam}) {
    SCOPED_TRACE(op::to_string(kind));
    Job whole = tasks(2, 2);
    whole.optimizer = kind;
    whole.backend = backend;
    whole.steps = backend == "apart" ? 6 : whole.steps;
    Job first = whole, second = whole;
    first.steps = second.steps = whole.steps / 2;
    first.ends_with = second.goes_on_from = folder / "half.safetensors";
    second.servers = 1;
    second.options.chunk_elements = 5000;
    train(first);
    expect_equal(train(second).values, train(whole).values);
  }
}

TEST(ParameterServer, TrainingGoesOnFromACheckpoint) { expect_to_go_on_from_a_checkpoint(""); }

TEST(ParameterServer, TrainingOnDevicesGoesOnFromACheckpoint) { expect_to_go_on_from_a_checkpoint("apart"); }

TEST(ParameterServer, WithoutOverlapTheResultIsTheSame) {
  Job job = tasks(3, 2);
  const Outcome with = train(job);
  job.options.overlap = false;
  expect_equal(train(job).values, with.values);
}

TEST(ParameterServer, BatchNormOverAllWorkers) {
  Job job = tasks(2, 1);
  job.model = "resnet20";
  job.sync_batch_norm = true;
  job.steps = 3;
  const Outcome outcome = train(job);
  EXPECT_LT(outcome.losses.back(), outcome.losses.front());
}

struct Problem {
  const char* model;
  op::OptimizerKind optimizer;
  float learning_rate;
  int steps;
};
// A convex one and a small convolutional network.
constexpr std::array kProblems{Problem{"convex", op::OptimizerKind::sgd, 0.2f, 100},
                               Problem{"small", op::OptimizerKind::sgd, 0.05f, 150}};

Job asynchronous_job(const Problem& problem) {
  Job job = tasks(3, 2);
  job.model = problem.model;
  job.optimizer = problem.optimizer;
  job.learning_rate = problem.learning_rate;
  job.steps = problem.steps;
  job.options.mode = Mode::asynchronous;
  return job;
}

TEST(ParameterServer, AsynchronousUpdatesConverge) {
  for (const Problem& problem : kProblems) {
    SCOPED_TRACE(problem.model);
    const Job job = asynchronous_job(problem);
    const Outcome outcome = train(job);
    EXPECT_LT(outcome.losses.back(), 0.3 * outcome.losses.front());
    for (const auto& counters : outcome.counters) {
      EXPECT_EQ(counters.at("updates"), counters.at("chunks").get<int>() * job.steps * job.workers);
    }
  }
}

class BoundedStaleness : public testing::TestWithParam<int> {};

// Worker 0 sleeps: the others would run away from it.
TEST_P(BoundedStaleness, NobodyIsFurtherAheadThanTheBound) {
  for (const Problem& problem : kProblems) {
    SCOPED_TRACE(problem.model);
    Job job = asynchronous_job(problem);
    job.options.staleness = GetParam();
    job.before_step = [](int worker, int) {
      if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    const Outcome outcome = train(job);
    EXPECT_LT(outcome.losses.back(), 0.3 * outcome.losses.front());
    for (const auto& counters : outcome.counters) {
      EXPECT_LE(counters.at("max_lead"), GetParam());
      // A gradient misses at most what the others may do between the slowest and the fastest they can be.
      EXPECT_LE(counters.at("max_staleness"), (2 * GetParam() + 1) * (job.workers - 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bounds, BoundedStaleness, testing::Values(0, 1, 3));

TEST(ParameterServer, ASlowBackupWorkerIsNotWaitedFor) {
  Job job = tasks(3, 1);
  job.options.backup_workers = 1;
  job.before_step = [](int worker, int) {
    if (worker == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const Outcome outcome = train(job);
  EXPECT_LT(outcome.losses.back(), outcome.losses.front());
  EXPECT_GT(outcome.counters[0].at("dropped_gradients"), 0);
}

}  // namespace
}  // namespace trireme::ps
