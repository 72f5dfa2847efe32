#include "trireme/train/checkpoint.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <semaphore>

#include "tests/support/half_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/small_training.hpp"
#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

using testkit::SmallTraining;

TrainingState state_at(std::int64_t step) {
  return {.model = "small",
          .classes = 5,
          .seed = 7,
          .step = step,
          .samples = step * 4,
          .global_batch_size = 4,
          .optimizer = "momentum",
          .others = {{"best_accuracy", "0.5"}}};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class CheckpointOf : public testing::TestWithParam<op::OptimizerKind> {
 protected:
  testkit::TemporaryFolder folder_;
};

TEST_P(CheckpointOf, TrainingGoesOnAsIfItHadNeverStopped) {
  const op::OptimizerRule rule = optimizer_rule(GetParam(), 1e-4f);
  SmallTraining whole(4, rule);
  for (int i = 0; i < 6; ++i) whole.run(i * 4);

  const std::string path = folder_ / "c.safetensors";
  {
    SmallTraining first(4, rule);
    for (int i = 0; i < 3; ++i) first.run(i * 4);
    write_checkpoint(take_checkpoint(first.store(), state_at(3)), path);
  }
  SmallTraining second(4, rule, 99);  // other initial values
  const CheckpointFile file(path);
  EXPECT_EQ(file.state().step, 3);
  EXPECT_EQ(file.state().samples, 12);
  EXPECT_EQ(file.state().others, (Metadata{{"best_accuracy", "0.5"}}));
  file.restore(second.store());
  EXPECT_EQ(second.store().step, 3u);
  for (int i = 3; i < 6; ++i) second.run(i * 4);
  EXPECT_EQ(second.values(), whole.values());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, CheckpointOf,
                         testing::Values(op::OptimizerKind::sgd, op::OptimizerKind::momentum,
                                         op::OptimizerKind::rmsprop, op::OptimizerKind::adam, op::OptimizerKind::lion),
                         [](const auto& kind) { return std::string(op::to_string(kind.param)); });

class Checkpoints : public testing::Test {
 protected:
  std::string write(std::int64_t step) {
    const std::string path = checkpoint_path(folder_.path(), step);
    write_checkpoint(take_checkpoint(training_.store(), state_at(step)), path);
    return path;
  }
  std::shared_ptr<const Checkpoint> checkpoint_at(std::int64_t step) {
    return std::make_shared<const Checkpoint>(take_checkpoint(training_.store(), state_at(step)));
  }

  testkit::TemporaryFolder folder_;
  SmallTraining training_{4, optimizer_rule(op::OptimizerKind::momentum)};
};

TEST_F(Checkpoints, OneByteThatHasChangedIsFound) {
  const std::string path = write(1);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-5, std::ios::end);
  file.put('x');
  file.close();
  const std::string message = message_of([&] { CheckpointFile read(path); });
  EXPECT_NE(message.find("is damaged: its checksum"), std::string::npos) << message;
}

TEST_F(Checkpoints, SumsKeepAllTheirBits) {
  TrainingState state = state_at(3);
  state.train_seconds = 0.1 + 0.2;
  state.epoch = {.steps = 2, .loss = 1.0 / 3, .seconds = 2.0 / 7};
  const std::string path = checkpoint_path(folder_.path(), 3);
  write_checkpoint(take_checkpoint(training_.store(), state), path);
  const CheckpointFile file(path);
  EXPECT_EQ(file.state().train_seconds, state.train_seconds);
  EXPECT_EQ(file.state().epoch.steps, 2);
  EXPECT_EQ(file.state().epoch.loss, state.epoch.loss);
  EXPECT_EQ(file.state().epoch.seconds, state.epoch.seconds);
}

TEST_F(Checkpoints, PositionsLeftOverAreKept) {
  TrainingState state = state_at(3);
  state.leftover = {{0, 2}, {5, 9}};
  const Metadata kept = to_metadata(state);
  MetadataReader reader("it", kept);
  EXPECT_EQ(read_state(reader).leftover, state.leftover);
  for (const char* text : {"2-0", "5-9,0-2", "1", "a-b", "-"}) {
    Metadata damaged = kept;
    damaged["leftover"] = text;
    EXPECT_NE(message_of([&] {
                MetadataReader other("it", damaged);
                read_state(other);
              }).find("left over"),
              std::string::npos)
        << text;
  }
}

TEST_F(Checkpoints, OneFromBeforeThereWereSumsIsRead) {
  const std::string path = write(3);
  {
    const SafetensorsFile file(path);
    Metadata metadata = file.metadata();
    for (const char* key : {"epoch_steps", "epoch_loss", "epoch_seconds"}) EXPECT_EQ(metadata.erase(key), 1U) << key;
    EXPECT_FALSE(metadata.contains("train_seconds"));
    std::vector<NamedTensor> tensors;
    for (const std::string& name : file.names()) tensors.push_back({name, file.read(name)});
    write_safetensors(folder_ / "old.safetensors", tensors, metadata);
  }
  const CheckpointFile old(folder_ / "old.safetensors");
  EXPECT_EQ(old.state().step, 3);
  EXPECT_FALSE(old.state().train_seconds);
  EXPECT_EQ(old.state().epoch.steps, 0);
  EXPECT_EQ(old.state().others, (Metadata{{"best_accuracy", "0.5"}}));
}

TEST_F(Checkpoints, OneOfAnotherNetworkIsRefused) {
  SmallTraining other(4, optimizer_rule(op::OptimizerKind::momentum), 7, 6);
  const CheckpointFile file(write(1));
  const std::string message = message_of([&] { file.restore(other.store()); });
  EXPECT_NE(message.find("is it from another network, or for other classes?"), std::string::npos) << message;
  SmallTraining adam(4, optimizer_rule(op::OptimizerKind::adam));
  const std::string state = message_of([&] { file.restore(adam.store()); });
  EXPECT_NE(state.find("/optimizer/1', which this network needs"), std::string::npos) << state;
}

TEST_F(Checkpoints, ASafetensorsFileOfSomebodyElseIsRefused) {
  write_safetensors(folder_ / "x.safetensors", {}, {});
  const std::string message = message_of([&] { CheckpointFile read(folder_ / "x.safetensors"); });
  EXPECT_NE(message.find("not a Trireme checkpoint"), std::string::npos) << message;
}

TEST_F(Checkpoints, TheNewestAreKept) {
  std::ofstream(folder_ / "checkpoint-1.safetensors.77-0.tmp") << "half";
  {
    CheckpointWriter writer(folder_.path(), 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoint-1.safetensors.77-0.tmp"));
    for (const std::int64_t step : {9, 10, 100}) {
      writer.save(checkpoint_at(step));
      writer.finish();
    }
    EXPECT_EQ(writer.last_path(), checkpoint_path(folder_.path(), 100));
  }
  EXPECT_EQ(list_checkpoints(folder_.path()),
            (std::vector{checkpoint_path(folder_.path(), 10), checkpoint_path(folder_.path(), 100)}));
  EXPECT_EQ(open_latest_checkpoint(folder_.path())->state().step, 100);
  EXPECT_EQ(open_latest_checkpoint(folder_ / "none"), nullptr);
}

TEST_F(Checkpoints, AFolderThatCannotBeWrittenIsRefused) {
  std::ofstream(folder_ / "file") << "";
  const std::string message = message_of([&] { CheckpointWriter writer(folder_ / "file", 2); });
  EXPECT_NE(message.find("give a writable folder for checkpoints"), std::string::npos) << message;
}

// Where it was full, what was there stays, and the next one is written when there is room again.
TEST_F(Checkpoints, AFailedWriteIsToldAndLosesNothing) {
  const std::string folder = folder_ / "c";
  CheckpointWriter writer(folder, 3);
  writer.save(checkpoint_at(1));
  writer.finish();
  std::filesystem::create_directory(checkpoint_path(folder, 2));  // in its way
  std::ofstream(checkpoint_path(folder, 2) + "/x") << "";
  writer.save(checkpoint_at(2));
  const std::string message = message_of([&] { writer.finish(); });
  EXPECT_NE(message.find("it is a folder"), std::string::npos) << message;
  EXPECT_EQ(writer.last_path(), checkpoint_path(folder, 1));
  writer.save(checkpoint_at(3));
  writer.finish();
  std::filesystem::remove_all(checkpoint_path(folder, 2));
  EXPECT_EQ(open_latest_checkpoint(folder)->state().step, 3);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

// A disk that takes as long as the test likes. What comes meanwhile does not wait, and the newest of it is written.
TEST_F(Checkpoints, ASlowDiskHoldsNobodyUp) {
  std::counting_semaphore<> begun(0), may_end(0);
  CheckpointWriter writer(folder_.path(), 3, [&](const Checkpoint& checkpoint, const std::string& path) {
    begun.release();
    may_end.acquire();
    if (checkpoint.state.step == 1) fail(ErrorKind::failed, "no room for the first");
    write_checkpoint(checkpoint, path);
  });
  const auto save = [&](std::int64_t step) { writer.save(checkpoint_at(step)); };
  save(1);
  begun.acquire();
  save(2);
  save(3);  // instead of the one before
  may_end.release();
  begun.acquire();
  // What went wrong with one is told by the next, which is written.
  EXPECT_EQ(message_of([&] { save(4); }), "no room for the first");
  may_end.release(2);
  writer.finish();
  EXPECT_EQ(list_checkpoints(folder_.path()),
            (std::vector{checkpoint_path(folder_.path(), 3), checkpoint_path(folder_.path(), 4)}));
}

// How often a process is killed while it writes: 25 times, or as TRIREME_TEST_KILLS says.
int kills_wanted() {
  const char* given = std::getenv("TRIREME_TEST_KILLS");
  return given != nullptr ? std::atoi(given) : 25;
}

// A process that does nothing but write checkpoints is killed at random moments. A kill counts when it has left a file
// half-written; until one does, as on a machine where the process hardly gets to run, it gets more and more time.
TEST_F(Checkpoints, TheLatestOneLoadsAfterAKillAtAnyMoment) {
  Checkpoint checkpoint = take_checkpoint(training_.store(), state_at(0));
  checkpoint.tensors.push_back({"large", HostTensor(Shape{1 << 18}, std::vector<float>(1 << 18, 0.5f))});
  const std::random_device::result_type seed = std::random_device{}();
  std::mt19937 random(seed);
  useconds_t longest = 20'000;
  std::int64_t complete = -1;
  int kills = 0, tries = 0;
  while (kills < kills_wanted() || complete < 0) {
    ASSERT_LT(tries++, 40 * kills_wanted()) << kills << " kills while a checkpoint was written; seed " << seed;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Checkpoint mine = checkpoint;
      for (mine.state.step = complete + 1;; ++mine.state.step) {
        write_checkpoint(mine, checkpoint_path(folder_.path(), mine.state.step));
        std::filesystem::remove(checkpoint_path(folder_.path(), mine.state.step - 2));
      }
    }
    usleep(std::uniform_int_distribution<useconds_t>(0, longest)(random));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto halves = testkit::half_files(folder_.path());
    if (!halves.empty()) {
      ++kills;
    } else if (kills == 0 && longest < 500'000) {
      longest *= 2;
    }
    for (const std::string& half : halves) std::filesystem::remove(half);
    const auto latest = open_latest_checkpoint(folder_.path());
    if (latest == nullptr) continue;
    EXPECT_GE(latest->state().step, complete);
    complete = latest->state().step;
  }
  std::printf("%d kills in %d tries while a checkpoint was written, %lld complete ones in between; seed %lld\n", kills,
              tries, static_cast<long long>(complete + 1), static_cast<long long>(seed));
}

}  // namespace
}  // namespace trireme::train
