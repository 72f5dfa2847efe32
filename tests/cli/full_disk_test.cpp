// The program on a disk that becomes full: it says so, loses nothing that was complete and leaves nothing that is not.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/support/half_files.hpp"
#include "tests/support/libraries.hpp"
#include "tests/support/small_disk.hpp"
#include "trireme/data/record_file.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;
using nlohmann::json;

constexpr std::int64_t kMegabyte = 1 << 20;
constexpr const char* kFull = "No space left on device";

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.is_there()) GTEST_SKIP() << "a file system cannot be mounted here";
  }

  static void expect_failed(const CommandResult& result, const Words& parts) {
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    for (const std::string& part : parts) EXPECT_NE(result.err.find(part), std::string::npos) << part << result.err;
  }

  // 13 MB of weights, 100 images an epoch.
  Words train_words(const Words& options) {
    const std::string data = folder_ / "digits";
    if (!std::filesystem::exists(data)) {
      EXPECT_EQ(
          run_trireme({"data", "make", "--out", data, "--samples", "100", "--validation-samples", "50"}).exit_code, 0);
    }
    Words words{"train", "--model", "mnist", "--data-dir", data, "--optimizer", "sgd", "--autotune", "off"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  CommandResult train(const Words& options) { return run_trireme(train_words(options)); }
  CommandResult train_in_shell(const Words& options, const std::string& redirection) {
    std::string command = TRIREME_BINARY;
    for (const std::string& word : train_words(options)) command += " " + word;
    return run_command({"/bin/sh", "-c", command + " " + redirection});
  }
  static std::size_t epochs_in(const std::string& record) {
    std::ifstream file(record);
    return json::parse(file)["epochs"].size();
  }

  TemporaryFolder folder_;
  SmallDisk disk_{20 * kMegabyte};
};

TEST_F(FullDisk, TrainingGoesOnAndKeepsTheCheckpointsThatItHas) {
  const std::string checkpoints = disk_ / "c";
  const CommandResult result =
      train({"--epochs", "3", "--batch-size", "50", "--checkpoint-dir", checkpoints, "--record", folder_ / "r.json"});
  expect_failed(result, {kFull, "training continues", "the last checkpoint could not be written"});
  EXPECT_EQ(epochs_in(folder_ / "r.json"), 3U);
  // There is room for one. It is the first that was written, which a slow writer may have begun with the second.
  ASSERT_EQ(train::list_checkpoints(checkpoints).size(), 1U);
  const std::int64_t step = train::open_latest_checkpoint(checkpoints)->state().step;
  EXPECT_TRUE(step == 2 || step == 4) << step;
  EXPECT_EQ(half_files(disk_.path()), Words{});

  ASSERT_TRUE(disk_.resize(60 * kMegabyte));
  const CommandResult resumed =
      train({"--epochs", "3", "--batch-size", "50", "--checkpoint-dir", checkpoints, "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(train::open_latest_checkpoint(checkpoints)->state().step, 6);
}

TEST_F(FullDisk, NothingElseThatTrainingWritesEndsIt) {
  disk_.fill(4096);  // for the first bytes of TensorBoard's file
  const CommandResult result = train({"--epochs", "2", "--batch-size", "5", "--csv", disk_ / "log.csv", "--record",
                                      disk_ / "r.json", "--tensorboard", disk_ / "tb", "--display-every", "1"});
  if (result.exit_code == 3) GTEST_SKIP() << result.err;
  expect_failed(result, {disk_ / "log.csv", disk_ / "r.json", disk_ / "tb/events.out", kFull, "training continues"});
  EXPECT_NE(result.out.find("epoch   2"), std::string::npos) << result.out;
  EXPECT_EQ(std::filesystem::file_size(disk_ / "log.csv"), 0U);
  EXPECT_FALSE(std::filesystem::exists(disk_ / "r.json"));
  EXPECT_EQ(half_files(disk_.path()), Words{});
  for (const auto& entry : std::filesystem::directory_iterator(disk_ / "tb")) {
    const data::RecordIndex index = data::index_records(data::InputFile(entry.path()));
    EXPECT_FALSE(index.problem) << *index.problem;
    EXPECT_GE(index.records.size(), 1U);
  }
}

TEST_F(FullDisk, LinesThatAreLostOnStandardOutputAreNotLostInSilence) {
  const CommandResult result =
      train_in_shell({"--epochs", "1", "--batch-size", "50", "--record", folder_ / "r.json"}, "> /dev/full");
  expect_failed(result, {"cannot write to standard output"});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "r.json"));
}

// Standard error is a file on a full disk as well, as in a batch job: what is to be said there ends nothing.
TEST_F(FullDisk, WarningsThatAreLostEndNothing) {
  const CommandResult result = train_in_shell({"--epochs", "3", "--batch-size", "50", "--checkpoint-dir", disk_ / "c",
                                               "--csv", disk_ / "log.csv", "--record", folder_ / "r.json"},
                                              "2> /dev/full");
  expect_failed(result, {});
  EXPECT_EQ(epochs_in(folder_ / "r.json"), 3U);
  EXPECT_EQ(half_files(disk_.path()), Words{});
}

TEST_F(FullDisk, ADataSetAppearsWholeOrNotAtAll) {
  if (!has_library("libjpeg-turbo") || !has_library("protobuf")) GTEST_SKIP() << "needs all formats";
  ASSERT_TRUE(disk_.resize(kMegabyte));
  for (const std::string format : {"idx", "folder", "tfrecord"}) {
    const std::string out = disk_ / format;
    const Words make{"data",   "make",      "--out",  out,        "--format",
                     format,   "--samples", "400",    "--shards", "4",
                     "--size", "64",        "--seed", "3",        "--validation-samples",
                     "0"};
    const CommandResult made = run_trireme(make);
    expect_failed(made, {kFull, "the same command continues from there"});
    EXPECT_FALSE(std::filesystem::exists(out));
    EXPECT_EQ(half_files(disk_.path()), Words{});
    ASSERT_TRUE(disk_.resize(20 * kMegabyte));
    const CommandResult again = run_trireme(make);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    const CommandResult verified = run_trireme({"data", "verify", out});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;

    disk_.fill(64 << 10);
    const CommandResult converted =
        run_trireme({"data", "convert", out, "--out", disk_ / "converted", "--format", "folder"});
    expect_failed(converted, {kFull, "the same command continues from there"});
    EXPECT_FALSE(std::filesystem::exists(disk_ / "converted"));
    EXPECT_EQ(half_files(disk_.path()), Words{});
    for (const auto& entry : std::filesystem::directory_iterator(disk_.path())) {
      std::filesystem::remove_all(entry.path());
    }
    ASSERT_TRUE(disk_.resize(kMegabyte));
  }
}

TEST_F(FullDisk, NotEvenTheBeginningOfADataSetIsInTheWayOfTheNextTry) {
  disk_.fill(0);
  const Words make{"data", "make", "--out", disk_ / "digits", "--samples", "50"};
  expect_failed(run_trireme(make), {kFull});
  std::filesystem::remove(disk_ / "other-things");
  const CommandResult again = run_trireme(make);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(FullDisk, AnExportLeavesWhatWasThere) {
  ASSERT_EQ(train({"--epochs", "1", "--batch-size", "50", "--checkpoint-dir", folder_ / "c"}).exit_code, 0);
  disk_.fill(kMegabyte);
  for (const std::string format : {"onnx", "safetensors"}) {
    std::ofstream(disk_ / "exported") << "before";
    const CommandResult result =
        run_trireme({"export", "--checkpoint", folder_ / "c", "--format", format, "--out", disk_ / "exported"});
    if (result.exit_code == 3) continue;  // a build without protobuf
    expect_failed(result, {kFull, disk_ / "exported"});
    EXPECT_EQ(std::filesystem::file_size(disk_ / "exported"), 6U);
    EXPECT_EQ(half_files(disk_.path()), Words{});
  }
}

// Needs no mount: the system refuses as on a full disk, once the program does not let itself be killed.
TEST(LimitedFiles, AreAnErrorAndNotTheEndOfTheProcess) {
  const TemporaryFolder folder;
  const CommandResult result = run_command(
      {"/bin/sh", "-c", "ulimit -f 100; exec " TRIREME_BINARY " data make --samples 1000 --out " + (folder / "a")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_EQ(half_files(folder.path()), Words{});
}

}  // namespace
}  // namespace trireme::testkit
