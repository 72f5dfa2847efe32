// `trireme train` on several real processes: the weights are those of one process, and a run goes on from a checkpoint
// with others than it began with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/cluster_world.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

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
    words.insert(words.end(), {"--", "train", "--model", "mnist", "--data-dir", folder_ / "digits", "--batch-size",
                               std::to_string(20 / workers), "--autotune", "off", "--init-learning-rate", "0.01",
                               "--checkpoint-dir", folder_ / name, "--record", folder_ / (name + ".json")});
    words.insert(words.end(), options.begin(), options.end());
    LaunchedJob job(words);
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    EXPECT_NE(job.out().find("top-1"), std::string::npos) << job.out();
    const auto paths = train::list_checkpoints(folder_ / name);
    return paths.empty() ? "" : paths.back();
  }

  // Of the last epoch.
  double loss_of(const std::string& name) const {
    std::ifstream file(folder_ / (name + ".json"));
    return nlohmann::json::parse(file)["epochs"].back()["loss"];
  }

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

  static bool has_grpc() {
    const auto names = comm::cluster_protocols();
    return std::find(names.begin(), names.end(), "grpc") != names.end();
  }

  TemporaryFolder folder_;
};

TEST_F(TrainWorkers, TrainLikeOneProcess) {
  const std::string one = train("one", 1, 0, {"--epochs", "1"});
  EXPECT_LT(distance(train("two", 2, 0, {"--epochs", "1"}), one), 5e-4);
  EXPECT_NEAR(loss_of("two"), loss_of("one"), 1e-3 * loss_of("one"));  // of all samples, not of the first worker's
  if (!has_grpc()) GTEST_SKIP() << "the rest needs gRPC";
  EXPECT_LT(distance(train("served", 2, 1, {"--epochs", "1"}), one), 5e-4);
  EXPECT_NEAR(loss_of("served"), loss_of("one"), 1e-3 * loss_of("one"));
}

// 500 images and a batch of 20: the first epoch ends with step 25.
TEST_F(TrainWorkers, ARunGoesOnWithOtherWorkersAndServers) {
  const std::string whole = train("whole", 2, 0, {"--epochs", "2"});
  train("parts", 2, 0, {"--epochs", "1"});
  EXPECT_LT(distance(train("parts", 1, 0, {"--epochs", "2", "--resume"}), whole), 1e-3);
  if (!has_grpc()) GTEST_SKIP() << "the rest needs gRPC";
  train("served", 2, 2, {"--epochs", "1"});
  EXPECT_LT(distance(train("served", 2, 1, {"--epochs", "2", "--resume"}), whole), 1e-3);
}

TEST_F(TrainWorkers, AsynchronousWorkersTrainTooAndTheFirstEvaluates) {
  if (!has_grpc()) GTEST_SKIP() << "needs gRPC";
  const std::string path = train("async", 2, 1, {"--epochs", "1", "--async"});
  EXPECT_EQ(train::CheckpointFile(path).state().step, 25);
}

}  // namespace
}  // namespace trireme::testkit
