#include "trireme/onnx/model_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/onnx/small_network.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/onnx/onnx.pb.h"
#include "trireme/runtime/session.hpp"

namespace trireme::onnx {
namespace {

using testkit::SmallNetwork;

std::ifstream open_stored(const std::string& name) {
  std::ifstream file(std::string(TRIREME_ONNX_FILES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return file;
}

std::string export_error(const Network& network) {
  try {
    to_onnx(network);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(OnnxFile, TextsGoAlong) {
  const SmallNetwork small;
  const VariableStore values(small.graph, 1);
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(to_onnx({.name = "small",
                                             .graph = small.graph,
                                             .images = small.images,
                                             .logits = small.logits,
                                             .values = values,
                                             .metadata = {{"mean", "127.5"}, {"class_names", "[]"}}})));
  ASSERT_EQ(model.metadata_props_size(), 2);
  EXPECT_EQ(model.metadata_props(1).key(), "mean");
  EXPECT_EQ(model.metadata_props(1).value(), "127.5");
}

// The stored file was run by ONNX Runtime, which gave the stored logits: so equal bytes here, and equal logits in the
// next test, say what running it there would say.
TEST(OnnxFile, IsTheOneThatOnnxRuntimeHasRun) {
  const SmallNetwork small;
  VariableStore values(small.graph, 1);
  small.set_values(values);
  auto file = open_stored("small.onnx");
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  const std::string written = to_onnx({"small", small.graph, small.images, small.logits, values});
  EXPECT_TRUE(written == stored) << written.size() << " bytes, stored are " << stored.size();
}

TEST(OnnxFile, NetworkGivesTheLogitsOfOnnxRuntime) {
  SmallNetwork small(2);
  for (const std::string& name : backend_names()) {
    const auto backend = make_backend(name);
    Session session(small.graph, *backend);
    small.set_values(session.variables());
    const auto logits = session.run({small.logits}, {{small.images, small.sample_images()}});
    const auto stored = nlohmann::json::parse(open_stored("small_logits.json")).get<std::vector<float>>();
    ASSERT_EQ(logits[0].f32().size(), stored.size());
    for (std::size_t i = 0; i < stored.size(); ++i) EXPECT_NEAR(logits[0].f32()[i], stored[i], 1e-4) << name;
  }
}

TEST(OnnxFile, SaysTheBatchSizeOnlyWhereAskedTo) {
  const SmallNetwork small(3);
  const VariableStore values(small.graph, 1);
  for (const bool any_batch : {true, false}) {
    pb::Model model;
    ASSERT_TRUE(model.ParseFromString(to_onnx({"small", small.graph, small.images, small.logits, values, any_batch})));
    for (const pb::ValueInfo* end : {&model.graph().input(0), &model.graph().output(0)}) {
      const pb::TensorShape::Dimension& batch = end->type().tensor_type().shape().dim(0);
      EXPECT_EQ(batch.dim_param(), any_batch ? "batch" : "");
      EXPECT_EQ(batch.dim_value(), any_batch ? 0 : 3);
    }
  }
}

TEST(OnnxFile, HoldsAVariableInEveryShapeThatIsRead) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 2, 1, 1}, "images");
  const Tensor weights = variable(graph, {2, 2, 1, 1}, op::Initializer::constant(1), "w");
  const Tensor logits = fully_connected(convolution(images, weights), weights);
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(to_onnx({"shared", graph, images, logits, VariableStore(graph, 1)})));
  ASSERT_EQ(model.graph().initializer_size(), 2);
  EXPECT_EQ(model.graph().initializer(0).name(), "w");
  EXPECT_EQ(model.graph().initializer(0).dims_size(), 4);
  EXPECT_EQ(model.graph().initializer(1).name(), "w/2x2");
  EXPECT_EQ(model.graph().initializer(1).dims_size(), 2);
}

TEST(OnnxFile, LeavesOutWhatTheLogitsDoNotNeed) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 2}, "images");
  const Tensor labels = placeholder(graph, {1}, "labels", DataType::i32);
  const Tensor logits = relu(images);
  softmax_cross_entropy(logits, labels);
  pb::Model model;
  ASSERT_TRUE(model.ParseFromString(to_onnx({"pruned", graph, images, logits, VariableStore(graph, 1)})));
  EXPECT_EQ(model.graph().node_size(), 1);
  EXPECT_EQ(model.graph().input_size(), 1);
}

TEST(OnnxFile, RefusesWhatItCannotHold) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 2}, "images");
  const auto error = [&](Tensor logits) {
    return export_error({"refused", graph, images, logits, VariableStore(graph, 1)});
  };
  EXPECT_NE(error(dropout(images, 0.5f, "drop")).find("'drop': ONNX files of trireme have no dropout"),
            std::string::npos);
  EXPECT_NE(error(square(images)).find("no square"), std::string::npos);
  EXPECT_NE(error(images + placeholder(graph, {1, 2}, "more")).find("'more'"), std::string::npos);

  const Tensor large = variable(graph, {1 << 28, 2}, op::Initializer::constant(0), "large");
  EXPECT_NE(error(fully_connected(images, large)).find("its variables have 2.1 GB"), std::string::npos);
}

}  // namespace
}  // namespace trireme::onnx
