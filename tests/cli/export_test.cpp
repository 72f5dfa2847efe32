// `trireme export` as a user meets it. That others read what it writes is tested in tests/peers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/run_command.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/models/model.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using train::NamedTensor;
using train::SafetensorsFile;

class Export : public testing::Test {
 protected:
  // A checkpoint of `trivial` after so many steps, every value that number, with averages of 9.
  std::string write_checkpoint(std::int64_t step, bool averages = false, const std::string& model = "trivial") {
    Graph graph;
    build_model(graph, "trivial", {.batch_size = 1, .num_classes = 3});
    VariableStore store(graph, 1);
    train::Checkpoint checkpoint = train::take_checkpoint(store, {.model = model, .classes = 3, .step = step});
    for (NamedTensor& tensor : checkpoint.tensors) std::ranges::fill(tensor.value.f32(), static_cast<float>(step));
    for (const NodeId id : graph.variables()) {
      HostTensor value(graph.node(id).outputs[0]);
      std::ranges::fill(value.f32(), 9.0f);
      if (averages) checkpoint.tensors.push_back({train::average_name(graph.node(id)), value});
    }
    const std::string path = train::checkpoint_path(folder_.path(), step);
    train::write_checkpoint(checkpoint, path);
    return path;
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& part) {
    std::vector<std::string> command{"export"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const CommandResult result = run_trireme(command);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out_));
  }

  TemporaryFolder folder_;
  std::string out_ = folder_ / "exported";
};

TEST_F(Export, WritesTheWeightsOfTheNewestCheckpoint) {
  write_checkpoint(2);
  write_checkpoint(3, true);
  for (const bool average : {false, true}) {
    std::vector<std::string> command{"export", "--checkpoint", folder_.path(), "--format", "safetensors", "--out",
                                     out_};
    if (average) command.emplace_back("--average");
    const CommandResult result = run_trireme(command);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("trivial with 3 classes, step 3, from "), std::string::npos) << result.out;

    const SafetensorsFile file(out_);
    EXPECT_EQ(file.names().size(), 6U);
    EXPECT_EQ(file.read("logits/bias").f32()[2], average ? 9 : 3);
    EXPECT_EQ(file.type("logits/weights").shape, (Shape{3, 4096}));
    EXPECT_EQ(file.metadata().at("values"), average ? "average" : "last");
  }
}

TEST_F(Export, WritesOnnx) {
  const std::string checkpoint = write_checkpoint(1);
  const CommandResult result =
      run_trireme({"export", "--checkpoint", checkpoint, "--format", "onnx", "--out", out_, "--batch-size", "4"});
  if (result.exit_code == 3) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("images: 4 x 3 x 227 x 227, logits: 4 x 3"), std::string::npos) << result.out;
  std::ifstream file(out_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(bytes.find("logits/weights"), std::string::npos);
}

TEST_F(Export, RefusesWhatCannotBe) {
  const std::string checkpoint = write_checkpoint(1);
  expect_refused({"--checkpoint", checkpoint, "--format", "caffe", "--out", out_}, "allowed: onnx, safetensors");
  expect_refused({"--checkpoint", checkpoint, "--format", "safetensors", "--out", out_, "--batch-size", "2"},
                 "--batch-size works only with --format onnx");
  expect_refused({"--checkpoint", checkpoint, "--format", "safetensors", "--out", out_, "--average"},
                 "has no moving averages");
  expect_refused({"--checkpoint", checkpoint, "--format", "safetensors", "--out", folder_ / "no/folder"},
                 "give a file in a writable folder");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_refused({"--checkpoint", checkpoint, "--format", "safetensors", "--out", folder_ / "pipe"},
                 "it is a device or a pipe");
  expect_refused({"--checkpoint", checkpoint, "--out", out_}, "--format is missing");
  expect_refused({"--checkpoint", folder_ / "none", "--format", "onnx", "--out", out_}, "none");
  std::filesystem::create_directory(folder_ / "empty");
  expect_refused({"--checkpoint", folder_ / "empty", "--format", "onnx", "--out", out_},
                 "there are no checkpoints in this folder");
  expect_refused({"--checkpoint", write_checkpoint(4, false, "nosuchnetwork"), "--format", "onnx", "--out", out_},
                 "unknown model 'nosuchnetwork'");
  expect_refused({"--checkpoint", write_checkpoint(5, false, "mnist"), "--format", "onnx", "--out", out_},
                 "is it from another network?");
}

}  // namespace
}  // namespace trireme::testkit
