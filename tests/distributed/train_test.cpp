// `trireme train` on several real processes: the weights are those of one process, and a run goes on from a checkpoint
// with others than it began with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class TrainWorkers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        run_trireme({"data", "make", "--out", folder_ / "digits", "--samples", "500", "--validation-samples", "90"})
            .exit_code,
        0);
  }

  // Trains with a global batch of 20 and gives the path of the last checkpoint.
  std::string train(const std::string& name, int workers, int servers, const Words& options) {
    Words words{"--workers", std::to_string(workers), "--oversubscribe"};
    if (servers > 0) words.insert(words.end(), {"--ps", std::to_string(servers)});
    words.insert(words.end(),
                 {"--", "train", "--data-dir", folder_ / "digits", "--batch-size", std::to_string(20 / workers),
                  "--autotune", "off", "--batch-split", "1", "--init-learning-rate", "0.01", "--checkpoint-dir",
                  folder_ / name, "--record", folder_ / (name + ".json")});
    if (std::ranges::find(options, "--model") == options.end()) words = with(words, {"--model", "mnist"});
    LaunchedJob job(with(words, options));
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    EXPECT_NE(job.out().find("top-1"), std::string::npos) << job.out();
    const auto paths = train::list_checkpoints(folder_ / name);
    return paths.empty() ? "" : paths.back();
  }

  json last_epoch_of(const std::string& name) const {
    std::ifstream file(folder_ / (name + ".json"));
    return json::parse(file)["epochs"].back();
  }

  double training_loss_of(const std::string& name) const { return last_epoch_of(name)["loss"]; }

  static double distance(const std::string& a, const std::string& b) {
    const train::SafetensorsFile first(a), second(b);
    EXPECT_EQ(first.names(), second.names());
    double most = 0;
    for (const std::string& name : first.names()) {
      if (name.find("/optimizer/") != std::string::npos) continue;
      const HostTensor x = first.read(name), y = second.read(name);
      for (std::size_t i = 0; i < x.f32().size(); ++i) {
        most = std::max(most, static_cast<double>(std::abs(x.f32()[i] - y.f32()[i])));
      }
    }
    return most;
  }

  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  double validation_loss_of(const std::string& checkpoint, bool averages = false) {
    Words words{"eval", "--checkpoint", checkpoint, "--data-dir", folder_ / "digits", "--json"};
    if (averages) words.push_back("--average");
    const CommandResult evaluated = run_trireme(words);
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    return json::parse(evaluated.out)["loss"];
  }

  TemporaryFolder folder_;
};

class ServedWorkers : public TrainWorkers {
 protected:
  void SetUp() override {
    if (!comm::has_transport("gRPC")) GTEST_SKIP() << "servers need gRPC";
    TrainWorkers::SetUp();
  }
};

TEST_F(TrainWorkers, TrainLikeOneProcess) {
  const std::string one = train("one", 1, 0, {"--epochs", "1"});
  EXPECT_LT(distance(train("two", 2, 0, {"--epochs", "1"}), one), 5e-4);
  EXPECT_NEAR(training_loss_of("two"), training_loss_of("one"), 1e-3 * training_loss_of("one"))
      << "of all samples, not of the first worker's";
}

TEST_F(ServedWorkers, TrainLikeOneProcess) {
  const std::string one = train("one", 1, 0, {"--epochs", "1"});
  EXPECT_LT(distance(train("served", 2, 1, {"--epochs", "1"}), one), 5e-4);
  EXPECT_NEAR(training_loss_of("served"), training_loss_of("one"), 1e-3 * training_loss_of("one"));
}

// 500 images and a batch of 20: the first epoch ends with step 25. Roundings grow over 50 steps, by how much depends on
// the compiler's options: to 3e-3 when built for sanitizers.
TEST_F(TrainWorkers, ARunGoesOnWithOtherWorkers) {
  const std::string whole = train("whole", 2, 0, {"--epochs", "2"});
  train("parts", 2, 0, {"--epochs", "1"});
  EXPECT_LT(distance(train("parts", 1, 0, {"--epochs", "2", "--resume"}), whole), 4e-3);
}

TEST_F(ServedWorkers, ARunGoesOnWithOtherServers) {
  const std::string whole = train("whole", 2, 0, {"--epochs", "2"});
  train("served", 2, 2, {"--epochs", "1"});
  EXPECT_LT(distance(train("served", 2, 1, {"--epochs", "2", "--resume"}), whole), 1e-3);
}

TEST_F(ServedWorkers, ReplicatedOnesGoOnLikeAllReduce) {
  const Words replicated{"--variable-update", "distributed_replicated"};
  const std::string whole = train("whole", 2, 0, {"--epochs", "2"});
  train("replicated", 2, 1, with({"--epochs", "1"}, replicated));
  EXPECT_LT(distance(train("replicated", 2, 1, with({"--epochs", "2", "--resume"}, replicated)), whole), 1e-3);
}

// Each at its own pace: what comes out is no other run's, but it goes on where it was, and learns.
class UnevenWorkers : public ServedWorkers, public testing::WithParamInterface<Words> {};

TEST_P(UnevenWorkers, GoOnFromTheirCheckpoint) {
  const std::string first = train("uneven", 2, 1, with({"--epochs", "1"}, GetParam()));
  EXPECT_EQ(train::CheckpointFile(first).state().step, 25);
  const std::string second = train("uneven", 2, 1, with({"--epochs", "2", "--resume"}, GetParam()));
  EXPECT_EQ(train::CheckpointFile(second).state().step, 50);
  EXPECT_LT(validation_loss_of(second), validation_loss_of(first));
}

INSTANTIATE_TEST_SUITE_P(Modes, UnevenWorkers,
                         testing::Values(Words{"--async"}, Words{"--async", "--staleness", "1"},
                                         Words{"--backup-workers", "1"}),
                         [](const auto& mode) {
                           const std::string& last = mode.param.front();
                           return last == "--async" ? mode.param.size() == 1 ? "Asynchronous" : "BoundedStaleness"
                                                    : "BackupWorkers";
                         });

// Every worker has running statistics of its own; those of the first are evaluated, and are in the checkpoint.
TEST_F(TrainWorkers, AveragesWithBatchNormAreWhatWasEvaluated) {
  const std::string path = train("averages", 2, 0, {"--epochs", "0.4", "--model", "resnet20", "--average", "0.9"});
  const double trained = last_epoch_of("averages")["validation_loss"];
  EXPECT_NEAR(validation_loss_of(path, true), trained, 1e-4);
  EXPECT_GT(std::abs(validation_loss_of(path) - trained), 1e-3) << "the averages are something else";
}

// Each is met by one worker in an epoch, and by the other in another one: it counts once.
TEST_F(TrainWorkers, BrokenImagesAreCountedOverAllWorkers) {
  ASSERT_EQ(run_trireme({"data", "make", "--format", "folder", "--size", "28", "--samples", "40",
                         "--validation-samples", "10", "--out", folder_ / "shapes"})
                .exit_code,
            0);
  int broken = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "shapes/train")) {
    if (!entry.is_regular_file() || broken == 6) continue;
    std::ofstream(entry.path()) << "no image";
    ++broken;
  }
  ASSERT_EQ(broken, 6);
  const Words data{"--model",           "lenet", "--data-dir", folder_ / "shapes",
                   "--batch-size",      "5",     "--autotune", "off",
                   "--max-bad-records", "6",     "--record",   folder_ / "record.json"};
  const auto run = [&](const Words& command) {
    LaunchedJob job(with(with({"--workers", "2", "--oversubscribe", "--"}, command), data));
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    return job.out();
  };
  const std::string trained = run({"train", "--epochs", "4"});
  EXPECT_NE(trained.find("bad records: 6 skipped"), std::string::npos) << trained;
  run({"bench", "--num-warmup-batches", "0", "--num-batches", "4"});
  EXPECT_EQ(read_record(folder_ / "record.json")["results"]["bad_records"], 6);
}

TEST_F(TrainWorkers, CurvesShowWhereTheTimeOfAllHasGone) {
  train("curves", 2, 0, {"--epochs", "0.2", "--tensorboard", folder_ / "tb"});
  std::stringstream events;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tb")) {
    events << std::ifstream(entry.path(), std::ios::binary).rdbuf();
  }
  for (const char* part : {"compute", "input_wait", "communication", "exposed_communication", "optimizer"}) {
    EXPECT_NE(events.str().find(std::string("breakdown/") + part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace trireme::testkit
