// A training run as its observers and its end show it, with workers as threads. As a user meets it: tests/cli and
// tests/distributed.
#include "trireme/train/trainer.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/idx_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/ps/server.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/training_config.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

// 40 images, 10 in a step, whatever the number of workers: an epoch has 4 steps.
class TrainingRun : public testing::Test {
 protected:
  TrainingRun() {
    testkit::write_idx(folder_.path(), 40);
    testkit::write_idx(folder_.path(), 30, 10, "t10k");
  }

  TrainingOptions options(int workers) const {
    TrainingOptions options;
    options.step.model = "mnist";
    options.step.batch_size = 10 / workers;
    options.step.init_learning_rate = 0.01;
    options.step.num_intra_threads = 1;
    options.step.autotune = "off";
    options.step.bind = false;
    options.step.data.dir = folder_.path();
    options.checkpoint_dir = folder_ / "checkpoints";
    return options;
  }

  testkit::TemporaryFolder folder_;
};

// Every worker has a machine of its own: processors are not theirs to divide.
comm::LocalOptions apart(int ranks) { return {.size = ranks, .ranks_per_node = 1}; }

class Watcher : public TrainerObserver {
 public:
  void on_step(const StepReport& report) override {
    steps = report.step;
    if (report.step == stops_after) stop.request_stop();
  }
  void on_epoch(const EpochReport& report) override {
    ++epochs;
    accuracy = report.accuracy;
    losses.push_back(report.loss);
    train_seconds += report.train_seconds;
  }
  void on_end(const EndReport& report) override { end = report; }

  std::int64_t stops_after = 0, steps = 0;
  int epochs = 0;
  std::optional<Accuracy> accuracy;
  std::vector<double> losses;  // of epochs
  double train_seconds = 0;    // of epochs
  EndReport end;
  std::stop_source stop;
};

DataConfig data_in(const std::string& folder) {
  DataConfig config;
  config.dir = folder;
  return config;
}

// Of the 30 validation images.
class EvaluatorOf {
 public:
  explicit EvaluatorOf(const std::string& folder)
      : data_(open_evaluation_data(data_in(folder), evaluator_.model().info, 10)) {}

  VariableStore& variables() { return evaluator_.variables(); }
  std::optional<Accuracy> run(std::int64_t first = 0, const std::stop_token& stop = {}) {
    data_.pipeline.first = first;
    data::Pipeline pipeline(data_.dataset, data_.pipeline);
    return evaluator_.run(pipeline, stop);
  }

 private:
  std::shared_ptr<Backend> backend_ = make_backend(default_backend());
  Evaluator evaluator_{{.model = "mnist", .batch_size = 10}, *backend_};
  EvaluationData data_;
};

// The wish comes with the last step, when there is no other left that could bring it to the other worker.
TEST_F(TrainingRun, OneWorkerThatIsAskedToStopEndsTheEvaluationOfAll) {
  std::array<Watcher, 2> watchers;
  watchers[1].stops_after = 4;
  std::array<TrainingEnd, 2> ends{};
  comm::run_local(apart(2), [&](comm::Communicator& workers) {
    const auto rank = static_cast<std::size_t>(workers.rank());
    Trainer trainer(resolve(options(2), {.workers = 2}), {workers});
    ends[rank] = trainer.run({&watchers[rank]}, watchers[rank].stop.get_token());
  });
  for (const std::size_t rank : {0, 1}) {
    EXPECT_EQ(ends[rank], TrainingEnd::interrupted) << rank;
    EXPECT_EQ(watchers[rank].epochs, 1) << "its training is complete";
    EXPECT_FALSE(watchers[rank].accuracy) << "of a part of the images";
  }
  EXPECT_EQ(open_latest_checkpoint(folder_ / "checkpoints")->state().step, 4);
}

// Only the first one evaluates, and is content with what any network can do.
TEST_F(TrainingRun, AsynchronousWorkersEndWhenTheFirstIsGoodEnough) {
  std::array<Watcher, 2> watchers;
  std::array<TrainingEnd, 2> ends{};
  comm::run_local(apart(3), [&](comm::Communicator& all) {
    const auto workers = all.split(all.rank() < 2 ? 0 : -1, all.rank());
    if (all.rank() == 2) return ps::Server(all, 2).run();
    const auto rank = static_cast<std::size_t>(all.rank());
    TrainingOptions asked = options(2);
    asked.epochs = 500;
    asked.checkpoint_every = 3;  // not with the step that ends an epoch
    asked.target_accuracy = 0.01;
    asked.step.distribution.asynchronous = true;
    Trainer trainer(resolve(asked, {.workers = 2, .servers = 1}), {*workers, &all});
    ends[rank] = trainer.run({&watchers[rank]});
  });
  EXPECT_EQ(ends, (std::array{TrainingEnd::reached_target, TrainingEnd::reached_target}));
  EXPECT_EQ(watchers[0].steps % 4, 0) << "the end of an epoch";
  for (const Watcher& watcher : watchers) EXPECT_LT(watcher.steps, 4 * 500);

  // While it was evaluated the other one went on: what is kept is what was good enough.
  const auto kept = open_latest_checkpoint(folder_ / "checkpoints");
  EXPECT_EQ(kept->state().step, watchers[0].steps);
  ASSERT_TRUE(watchers[0].accuracy);
  EvaluatorOf evaluated(folder_.path());
  kept->restore_values(evaluated.variables(), false);
  EXPECT_NEAR(evaluated.run()->mean_loss(), watchers[0].accuracy->mean_loss(), 1e-5);
}

// The one that is asked to stop has no part in the evaluation, which is complete, as is the training.
TEST_F(TrainingRun, AWishThatNothingIsLeftForChangesNothing) {
  std::array<Watcher, 2> watchers;
  watchers[1].stops_after = 4;
  std::array<TrainingEnd, 2> ends{};
  comm::run_local(apart(2), [&](comm::Communicator& workers) {
    const auto rank = static_cast<std::size_t>(workers.rank());
    TrainingOptions asked = options(2);
    asked.evaluate_on = "first";
    Trainer trainer(resolve(asked, {.workers = 2}), {workers});
    ends[rank] = trainer.run({&watchers[rank]}, watchers[rank].stop.get_token());
  });
  EXPECT_EQ(ends, (std::array{TrainingEnd::done, TrainingEnd::done}));
  ASSERT_TRUE(watchers[0].accuracy);
  EXPECT_EQ(watchers[0].accuracy->samples, 30);
}

// Two epochs of four steps by some workers, interrupted after step 6 and resumed by `then` workers.
class ResumedRun : public TrainingRun {
 protected:
  std::array<Watcher, 2> interrupt_and_resume(int workers, int then) {
    std::array<Watcher, 2> parts;
    parts[0].stops_after = 6;
    run(workers, parts[0], "parts", false);
    run(then, parts[1], "parts", true);
    return parts;
  }
  void run(int workers, Watcher& watcher, const std::string& folder, bool resume) {
    comm::run_local(apart(workers), [&](comm::Communicator& all) {
      TrainingOptions asked = options(workers);
      asked.epochs = 2;
      asked.step.no_dropout = true;
      asked.checkpoint_dir = folder_ / folder;
      asked.resume = resume;
      Trainer trainer(resolve(asked, {.workers = workers}), {all});
      std::vector<TrainerObserver*> observers;
      if (all.rank() == 0) observers.push_back(&watcher);
      trainer.run(observers, all.rank() == 0 ? watcher.stop.get_token() : std::stop_token());
    });
  }
};

TEST_F(ResumedRun, TheLossOfAnEpochIsThatOfAllItsSteps) {
  Watcher whole;
  run(1, whole, "whole", false);
  ASSERT_EQ(whole.losses.size(), 2U);
  const std::array<Watcher, 2> parts = interrupt_and_resume(1, 1);
  ASSERT_EQ(parts[1].losses.size(), 1U);
  EXPECT_EQ(parts[0].losses[0], whole.losses[0]);
  EXPECT_EQ(parts[1].losses[0], whole.losses[1]) << "to the bit";
}

// Each worker's own loss is another one: what is kept is the mean of all.
TEST_F(ResumedRun, TheLossOfAnEpochIsTheSameWithOtherWorkers) {
  Watcher whole;
  run(2, whole, "whole", false);
  const std::array<Watcher, 2> parts = interrupt_and_resume(2, 1);
  ASSERT_EQ(parts[1].losses.size(), 1U);
  EXPECT_NEAR(parts[1].losses[0], whole.losses[1], 1e-5 * whole.losses[1]);
}

TEST_F(ResumedRun, ItsTimeIsThatOfAllParts) {
  const std::array<Watcher, 2> parts = interrupt_and_resume(1, 1);
  ASSERT_TRUE(parts[0].end.train_seconds && parts[1].end.train_seconds);
  EXPECT_EQ(*parts[0].end.train_seconds, parts[0].end.train_seconds_here);
  EXPECT_DOUBLE_EQ(*parts[1].end.train_seconds, parts[0].end.train_seconds_here + parts[1].end.train_seconds_here);
  EXPECT_NEAR(*parts[1].end.train_seconds, parts[0].train_seconds + parts[1].train_seconds, 1e-9)
      << "an epoch's seconds are those of all its steps";
  EXPECT_EQ(open_latest_checkpoint(folder_ / "parts")->state().train_seconds, parts[1].end.train_seconds);
}

// 1.5 epochs, and then 2: the second one is whole in the end.
TEST_F(TrainingRun, PartOfAnEpochIsGoneOnWith) {
  const auto run = [&](double epochs, const std::string& folder) {
    Watcher watcher;
    comm::run_local(apart(1), [&](comm::Communicator& all) {
      TrainingOptions asked = options(1);
      asked.epochs = epochs;
      asked.checkpoint_dir = folder_ / folder;
      asked.resume = true;
      Trainer trainer(resolve(asked, {}), {all});
      trainer.run({&watcher});
    });
    return watcher.losses.back();
  };
  const double whole = run(2, "whole"), half = run(1.5, "parts");
  EXPECT_NE(half, whole);
  EXPECT_EQ(run(2, "parts"), whole);
}

TEST_F(TrainingRun, AnEvaluatorIsStoppedBeforeItsEndAlone) {
  EvaluatorOf evaluated(folder_.path());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(evaluated.run(0, stop.get_token()));
  EXPECT_TRUE(evaluated.run(30, stop.get_token())) << "all images were counted";
}

}  // namespace
}  // namespace trireme::train
