// Training to accuracy on data that `trireme data make` draws: the network of the CSCS report learns the digits, in one
// process and by all-reduce, as well as it learns those of MNIST.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr double kTop1 = 0.992;
constexpr double kMostBetweenModes = 0.0015;  // of the same updates, summed in another order

class Accuracy : public testing::Test {
 protected:
  void SetUp() override {
    const CommandResult made =
        run_trireme({"data", "make", "--out", folder_ / "digits", "--samples", "9600", "--validation-samples", "2000"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  // With a global batch of 64, and nothing that depends on timing.
  Words train(const std::string& name, int workers) const {
    Words words{"train", "--model", "mnist", "--deterministic", "--autotune", "off", "--weight-decay", "1e-4"};
    words.insert(words.end(), {"--learning-rate-schedule", "cosine", "--init-learning-rate", "0.02"});
    words.insert(words.end(), {"--epochs", "2", "--num-epochs-per-decay", "2", "--data-dir", folder_ / "digits"});
    words.insert(words.end(), {"--batch-size", std::to_string(64 / workers), "--record", folder_ / (name + ".json")});
    return words;
  }
  double top1_of(const std::string& name) const {
    std::ifstream file(folder_ / (name + ".json"));
    return json::parse(file)["epochs"].back()["top1"];
  }

  TemporaryFolder folder_;
};

TEST_F(Accuracy, DrawnDigitsAreLearntByOneProcessAndByTwo) {
  CommandOptions how;
  how.timeout = 100s;
  const CommandResult alone = run_trireme(train("one", 1), how);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  Words words{"--workers", "2", "--oversubscribe", "--"};
  const Words command = train("two", 2);
  words.insert(words.end(), command.begin(), command.end());
  LaunchedJob together(words);
  ASSERT_EQ(together.exit_code(100s), 0) << together.err() << together.out();
  EXPECT_GE(top1_of("one"), kTop1) << alone.out;
  EXPECT_GE(top1_of("two"), kTop1) << together.out();
  EXPECT_LE(std::abs(top1_of("one") - top1_of("two")), kMostBetweenModes) << alone.out << together.out();
}

}  // namespace
}  // namespace trireme::testkit
