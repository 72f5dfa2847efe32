// What is done to images and how good a network is on them, as users of `train`, `eval` and `export` see it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/whole_image.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using Words = std::vector<std::string>;
using nlohmann::json;

constexpr int kSide = 32;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The pixels of a JPEG data set in CIFAR-10's files.
void write_cifar10(const std::string& from, const std::string& folder) {
  std::filesystem::create_directory(folder);
  for (const data::Split split : {data::Split::train, data::Split::validation}) {
    const auto dataset = data::open_dataset(from, {.split = split});
    data::WholeImages images(*dataset);
    data::Sample sample;
    const std::int64_t files = split == data::Split::train ? 5 : 1;
    for (std::int64_t file = 0; file < files; ++file) {
      std::ofstream out(files == 1 ? folder + "/test_batch.bin" : fmt::format("{}/data_batch_{}.bin", folder, file + 1),
                        std::ios::binary);
      for (std::int64_t i = file * dataset->size() / files; i < (file + 1) * dataset->size() / files; ++i) {
        dataset->read(i, sample);
        images.decode(i, sample, 3);
        out.put(static_cast<char>(sample.label));
        for (std::size_t channel = 0; channel < 3; ++channel) {
          for (std::size_t pixel = 0; pixel < kSide * kSide; ++pixel) {
            out.put(static_cast<char>(sample.bytes[3 * pixel + channel]));
          }
        }
      }
    }
  }
}

// Small coloured images as JPEG files, and a checkpoint of a network that has begun to learn them.
class Evaluate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TemporaryFolder>();
    made_ = run_trireme({"data", "make", "--format", "folder", "--size", "32", "--classes", "10", "--samples", "100",
                         "--validation-samples", "60", "--out", *data_ / "jpeg"});
    if (made_.exit_code != 0) return;
    trained_ = train(*data_ / "jpeg", "1", {"--checkpoint-dir", *data_ / "c", "--record", *data_ / "r.json"});
    ASSERT_EQ(trained_.exit_code, 0) << trained_.err;
    const CommandResult digits =
        run_trireme({"data", "make", "--out", *data_ / "digits", "--samples", "100", "--validation-samples", "60"});
    ASSERT_EQ(digits.exit_code, 0) << digits.err;
  }
  static void TearDownTestSuite() { data_.reset(); }
  void SetUp() override {
    if (made_.exit_code != 0) GTEST_SKIP() << made_.err;
  }

  static CommandResult train(const std::string& data, const std::string& epochs, const Words& options) {
    const Words words{"train", "--model",    "resnet20", "--data-dir", data,  "--batch-size",
                      "20",    "--autotune", "off",      "--epochs",   epochs};
    return run_trireme(with(words, options), {.timeout = std::chrono::seconds(110)});
  }
  static CommandResult eval(const std::string& data, const Words& options = {}) {
    return run_trireme(with(
        {"eval", "--checkpoint", *data_ / "c", "--data-dir", data, "--batch-size", "7", "--autotune", "off"}, options));
  }
  static json eval_json(const std::string& data, Words options = {}) {
    const CommandResult result = eval(data, with(std::move(options), {"--json"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? json::parse(result.out) : json();
  }
  static void expect_refused(const CommandResult& result, const std::string& text) {
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }
  // With ten good validation images and a broken one.
  std::string broken_copy() const {
    const std::string copy = folder_ / "broken";
    std::filesystem::copy(*data_ / "jpeg", copy, std::filesystem::copy_options::recursive);
    int count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(copy + "/val")) {
      if (!entry.is_regular_file()) continue;
      if (++count == 4) std::ofstream(entry.path()) << "no image";
      if (count > 11) std::filesystem::remove(entry.path());
    }
    return copy;
  }

  static std::unique_ptr<TemporaryFolder> data_;
  static CommandResult made_, trained_;
  TemporaryFolder folder_;
};

std::unique_ptr<TemporaryFolder> Evaluate::data_;
CommandResult Evaluate::made_, Evaluate::trained_;

TEST_F(Evaluate, SmallImagesAreTreatedAlikeInEveryContainer) {
  write_cifar10(*data_ / "jpeg", folder_ / "cifar");
  ASSERT_EQ(run_trireme({"data", "convert", *data_ / "jpeg", "--out", folder_ / "tfrecord", "--format", "tfrecord"})
                .exit_code,
            0);
  const CommandResult on_cifar = train(folder_ / "cifar", "0.2", {"--eval", "none"});
  for (const std::string& text : {trained_.out, on_cifar.out}) {
    EXPECT_NE(text.find("random crop after padding, flip, to 3x32x32, (pixel - 127.5) / 127.5"), std::string::npos)
        << text;
  }
  EXPECT_NE(trained_.out.find("by all workers, no crop, to 3x32x32"), std::string::npos) << trained_.out;
  const json jpeg = eval_json(*data_ / "jpeg");
  EXPECT_EQ(jpeg["preprocessing"], "no crop, to 3x32x32, (pixel - 127.5) / 127.5");
  for (const char* other : {"cifar", "tfrecord"}) {
    const json accuracy = eval_json(folder_ / other);
    EXPECT_EQ(accuracy["top1"], jpeg["top1"]) << other;
    EXPECT_EQ(accuracy["top5"], jpeg["top5"]) << other;
    EXPECT_NEAR(accuracy["loss"].get<double>(), jpeg["loss"].get<double>(), 1e-5) << other;
  }
}

TEST_F(Evaluate, TheCheckpointSaysWhatIsDoneToImagesAndOptionsChangeIt) {
  const Words chosen{"--crop",           "none",        "--augment", "none", "--eval-crop", "centre",
                     "--mean",           "120,110,100", "--std",     "60",   "--record",    folder_ / "r.json",
                     "--checkpoint-dir", folder_ / "c"};
  const CommandResult trained = train(*data_ / "jpeg", "0.4", chosen);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("no crop, to 3x32x32, (pixel - (120, 110, 100)) / 60"), std::string::npos) << trained.out;
  std::ifstream file(folder_ / "r.json");
  const json record = json::parse(file);
  EXPECT_EQ(record["config"]["crop"], "none");
  EXPECT_EQ(record["config"]["eval_crop"], "centre");
  EXPECT_EQ(record["config"]["augment"], "none");
  EXPECT_EQ(record["config"]["num_classes"], 10) << "of the data, not the network's eleven";

  Words eval{"eval",         "--checkpoint", folder_ / "c", "--data-dir", *data_ / "jpeg",
             "--batch-size", "20",           "--json",      "--autotune", "off"};
  const json as_trained = json::parse(run_trireme(eval).out);
  EXPECT_EQ(as_trained["preprocessing"], "centre crop, to 3x32x32, (pixel - (120, 110, 100)) / 60");
  EXPECT_NEAR(as_trained["loss"].get<double>(), record["epochs"][0]["validation_loss"].get<double>(), 1e-5);
  const json changed = json::parse(run_trireme(with(eval, {"--crop", "none", "--std", "50"})).out);
  EXPECT_EQ(changed["preprocessing"], "no crop, to 3x32x32, (pixel - (120, 110, 100)) / 50");

  // Going on does the same without being told, and does not begin to do something else.
  const Words resume{"--checkpoint-dir", folder_ / "c", "--resume"};
  const CommandResult resumed = train(*data_ / "jpeg", "0.6", resume);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("no crop, to 3x32x32, (pixel - (120, 110, 100)) / 60"), std::string::npos) << resumed.out;
  expect_refused(train(*data_ / "jpeg", "1", with(resume, {"--crop", "padded"})), "this training used --crop none");
}

TEST_F(Evaluate, BrokenImagesAreNamedCountedAndLeftOut) {
  const std::string broken = broken_copy();
  const CommandResult strict = eval(broken);
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_NE(strict.err.find("bad record number 1; --max-bad-records 0"), std::string::npos) << strict.err;
  const CommandResult counted = eval(broken, {"--max-bad-records", "1"});
  EXPECT_NE(counted.err.find("skipped: " + broken), std::string::npos) << counted.err;
  EXPECT_NE(counted.out.find("(10 images, 1 broken left out)"), std::string::npos) << counted.out;
  const json accuracy = eval_json(broken, {"--max-bad-records", "1"});
  EXPECT_EQ(accuracy["samples"], 10);
  EXPECT_EQ(accuracy["bad_records"], 1);
  const double correct = 10 * accuracy["top1"].get<double>();
  EXPECT_NEAR(correct, std::round(correct), 1e-9);

  const CommandResult trained = train(broken, "2", {"--max-bad-records", "1", "--record", folder_ / "r.json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("(10 images, 1 broken left out)"), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("bad records: 1 skipped, 1 of them validation images"), std::string::npos) << trained.out;
  const std::size_t named = trained.err.find("skipped: ");
  EXPECT_NE(named, std::string::npos) << trained.err;
  EXPECT_EQ(trained.err.find("skipped: ", named + 1), std::string::npos) << "once, not with every epoch";
  std::ifstream file(folder_ / "r.json");
  const json record = json::parse(file);
  EXPECT_EQ(record["bad_records"], 1);
  EXPECT_EQ(record["bad_validation_records"], 1);
  EXPECT_EQ(record["epochs"][0]["validation_samples"], 10);
}

TEST_F(Evaluate, WorkersShareTheImages) {
  const json alone = eval_json(*data_ / "jpeg");
  const CommandResult shared = run_trireme({"launch",
                                            "--workers",
                                            "2",
                                            "--oversubscribe",
                                            "--",
                                            "eval",
                                            "--checkpoint",
                                            *data_ / "c",
                                            "--data-dir",
                                            *data_ / "jpeg",
                                            "--batch-size",
                                            "7",
                                            "--autotune",
                                            "off",
                                            "--json",
                                            "--device",
                                            "cpu",
                                            "--num-intra-threads",
                                            "1",
                                            "--data-threads",
                                            "1"},
                                           {.timeout = std::chrono::seconds(110)});
  ASSERT_EQ(shared.exit_code, 0) << shared.err;
  std::string text = shared.out;  // lines may begin with the rank
  for (std::size_t at = 0; (at = text.find("[0] ")) != std::string::npos;) text.erase(at, 4);
  const json together = json::parse(text);
  EXPECT_EQ(together["samples"], 60);
  EXPECT_EQ(together["top1"], alone["top1"]);
  EXPECT_NEAR(together["loss"].get<double>(), alone["loss"].get<double>(), 1e-5);
  expect_refused(run_trireme({"launch", "--workers", "1", "--ps", "1", "--", "eval", "--checkpoint", *data_ / "c",
                              "--data-dir", *data_ / "jpeg"}),
                 "`eval` does not use parameter servers");
}

TEST_F(Evaluate, ProgressIsShownOnATerminal) {
  CommandOptions terminal;
  terminal.environment = {"TRIREME_PROGRESS=terminal"};
  const CommandResult shown = run_trireme(
      {"eval", "--checkpoint", *data_ / "c", "--data-dir", *data_ / "jpeg", "--batch-size", "30", "--autotune", "off"},
      terminal);
  EXPECT_NE(shown.err.find("\revaluating: 50 %"), std::string::npos) << shown.err;
  EXPECT_EQ(eval(*data_ / "jpeg").err.find("evaluating"), std::string::npos);
}

TEST_F(Evaluate, ImagesOfAnotherKindAreRefused) {
  ASSERT_EQ(run_trireme({"train", "--model", "mnist", "--data-dir", *data_ / "digits", "--batch-size", "50", "--epochs",
                         "0.5", "--autotune", "off", "--eval", "none", "--checkpoint-dir", folder_ / "grey"})
                .exit_code,
            0);
  const Words eval{"eval", "--checkpoint", folder_ / "grey", "--data-dir", *data_ / "jpeg", "--autotune", "off"};
  expect_refused(run_trireme(eval), "was trained on grey images of 28x28, but these are coloured, of 32x32");
  const CommandResult allowed = run_trireme(with(eval, {"--allow-other-data"}));
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
}

TEST_F(Evaluate, TrainingGoesOnWithTheSameImages) {
  std::filesystem::copy(*data_ / "c", folder_ / "c");
  ASSERT_EQ(run_trireme({"data", "make", "--format", "folder", "--size", "32", "--classes", "10", "--samples", "100",
                         "--validation-samples", "60", "--seed", "5", "--out", folder_ / "other"})
                .exit_code,
            0);
  const Words resume{"--checkpoint-dir", folder_ / "c", "--resume", "--eval", "none"};
  expect_refused(train(folder_ / "other", "1.2", resume), "is not the data set of the checkpoint");
  const CommandResult allowed = train(folder_ / "other", "1.2", with(resume, {"--allow-other-data"}));
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
  expect_refused(train(*data_ / "digits", "1.4", resume), "is not the data set of the checkpoint");
}

// As other programs need them to use the network.
TEST_F(Evaluate, ExportedFilesSayHowToUseThem) {
  const CommandResult exported =
      run_trireme({"export", "--checkpoint", *data_ / "c", "--format", "safetensors", "--out", folder_ / "weights"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const train::Metadata metadata = train::SafetensorsFile(folder_ / "weights").metadata();
  EXPECT_EQ(metadata.at("classes"), "10");
  EXPECT_EQ(metadata.at("mean"), "127.5");
  EXPECT_EQ(metadata.at("std"), "127.5");
  EXPECT_EQ(metadata.at("crop"), "none");
  EXPECT_EQ(metadata.at("preprocessing"), "no crop, to 3x32x32, (pixel - 127.5) / 127.5");
  EXPECT_EQ(json::parse(metadata.at("class_names")).size(), 10u);

  const CommandResult onnx =
      run_trireme({"export", "--checkpoint", *data_ / "c", "--format", "onnx", "--out", folder_ / "x.onnx"});
  if (onnx.exit_code == 3) GTEST_SKIP() << onnx.err;
  ASSERT_EQ(onnx.exit_code, 0) << onnx.err;
  EXPECT_NE(onnx.out.find("logits: batch x 10"), std::string::npos) << onnx.out;
  std::ifstream file(folder_ / "x.onnx", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (const std::string key : {"class_names", "preprocessing"}) {
    EXPECT_NE(bytes.find(metadata.at(key)), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace trireme::testkit
