#include "trireme/onnx/model_file.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/onnx/mobile_network.hpp"
#include "tests/onnx/small_network.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/onnx/onnx.pb.h"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::onnx {
namespace {

using testkit::MobileNetwork;
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

// The file's graph as text: "Add(images, add/offset)", one operator a line, and values as numbers.
class Written {
 public:
  Written(const Graph& graph, Tensor images, Tensor logits, bool any_batch = true) {
    const VariableStore values(graph, 1);
    EXPECT_TRUE(model_.ParseFromString(to_onnx({"written", graph, images, logits, values, any_batch})));
  }

  std::vector<std::string> operators() const {
    std::vector<std::string> lines;
    for (const pb::Node& node : model_.graph().node()) {
      lines.push_back(fmt::format("{}({})", node.op_type(), fmt::join(node.input(), ", ")));
    }
    return lines;
  }
  template <typename Number>
  std::vector<Number> values(const std::string& name) const {
    for (const pb::Tensor& tensor : model_.graph().initializer()) {
      if (tensor.name() != name) continue;
      std::vector<Number> numbers(tensor.raw_data().size() / sizeof(Number));
      std::memcpy(numbers.data(), tensor.raw_data().data(), tensor.raw_data().size());
      return numbers;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  const pb::Graph& graph() const { return model_.graph(); }

 private:
  pb::Model model_;
};

using Lines = std::vector<std::string>;

TEST(OnnxFile, ArithmeticWithNumbersIsMulAndAdd) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 2}, "images");
  const auto operators = [&](Tensor logits) { return Written(graph, images, logits).operators(); };
  EXPECT_EQ(operators(affine(images, 1, 3, "more")), Lines{"Add(images, more/offset)"});
  EXPECT_EQ(operators(affine(images, 2, 0, "twice")), Lines{"Mul(images, twice/scale)"});
  EXPECT_EQ(operators(affine(images, 1, 0, "same")), Lines{"Mul(images, same/scale)"});
  const Tensor both = affine(images, -1, 2, "both");
  EXPECT_EQ(operators(both), (Lines{"Mul(images, both/scale)", "Add(both/product, both/offset)"}));
  const Written written(graph, images, both);
  EXPECT_EQ(written.values<float>("both/scale"), std::vector{-1.0f});
  EXPECT_EQ(written.values<float>("both/offset"), std::vector{2.0f});
  EXPECT_EQ(written.graph().initializer(0).dims_size(), 0);
}

TEST(OnnxFile, ClipHasItsEndsAsInputs) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 2}, "images");
  const Written written(graph, images, relu6(images, "clipped"));
  EXPECT_EQ(written.operators(), Lines{"Clip(images, clipped/low, clipped/high)"});
  EXPECT_EQ(written.values<float>("clipped/low"), std::vector{0.0f});
  EXPECT_EQ(written.values<float>("clipped/high"), std::vector{6.0f});
}

TEST(OnnxFile, ReshapeKeepsTheBatchThatComes) {
  Graph graph;
  const Tensor images = placeholder(graph, {2, 6}, "images");
  const auto shape_of = [&](Tensor logits, bool any_batch) {
    return Written(graph, images, logits, any_batch).values<std::int64_t>("reshaped/shape");
  };
  const Tensor image = reshape(images, {2, 3, 2}, "reshaped");
  EXPECT_EQ(shape_of(image, true), (std::vector<std::int64_t>{0, 3, 2}));
  EXPECT_EQ(shape_of(image, false), (std::vector<std::int64_t>{2, 3, 2}));

  const Tensor mixed = reshape(images, {3, 4}, "mixed");
  EXPECT_NE(export_error({"refused", graph, images, mixed, VariableStore(graph, 1)})
                .find("'mixed': reshapes 2x6 to 3x4, which is not the same for every batch size"),
            std::string::npos);
  EXPECT_EQ(export_error({"fixed", graph, images, mixed, VariableStore(graph, 1), false}), "");

  // What does not depend on the images has no batch.
  const std::vector<float> six(6, 1.0f);
  const Tensor row = reshape(constant(graph, HostTensor({3, 2}, six), "table"), {1, 6}, "row");
  EXPECT_EQ(Written(graph, images, images + row).values<std::int64_t>("row/shape"), (std::vector<std::int64_t>{1, 6}));
}

TEST(OnnxFile, HoldsAMobileNetwork) {
  const MobileNetwork mobile(2);
  const Written written(mobile.graph, mobile.images, mobile.logits);
  EXPECT_EQ(written.values<float>("mean"), (std::vector{0.2f, -0.1f, 0.3f}));
  std::map<std::string, int> counts;
  std::vector<std::int64_t> groups;
  for (const pb::Node& node : written.graph().node()) {
    ++counts[node.op_type()];
    for (const pb::Attribute& attribute : node.attribute()) {
      if (attribute.name() == "group") groups.push_back(attribute.i());
    }
  }
  EXPECT_EQ(groups, (std::vector<std::int64_t>{1, 1, 20, 1, 1, 24, 1}));
  EXPECT_EQ(counts["Reshape"], 2);
  EXPECT_EQ(counts["Clip"], 7) << "two of relu6, three of hard-swish, two of squeeze-and-excite";
}

// Trained for some steps; the values then go into a file of the network for inference.
TEST(OnnxFile, MobileNetworkTrainsAndIsExported) {
  for (const std::string& name : backend_names()) {
    MobileNetwork mobile(8, true);
    const Tensor labels = placeholder(mobile.graph, {8}, "labels", DataType::i32);
    std::vector<Tensor> fetches{softmax_cross_entropy(mobile.logits, labels)};
    const auto updates = minimize(fetches[0], optimizer_rule(op::OptimizerKind::momentum), 0.02f);
    fetches.insert(fetches.end(), updates.begin(), updates.end());
    const auto backend = make_backend(name);
    Session session(mobile.graph, *backend);
    Executable& step = session.prepare(fetches);
    fill_uniform(step.input_f32(mobile.images), -1, 1, random_key(1, "images"));
    fill_uniform(step.input_i32(labels), 5, random_key(1, "labels"));
    std::vector<float> losses;
    for (int i = 0; i < 10; ++i) {
      step.run();
      losses.push_back(step.output(0)[0]);
    }
    EXPECT_LT(losses.back(), 0.7f * losses.front()) << name << ": " << ::testing::PrintToString(losses);

    const MobileNetwork inference(8);
    VariableStore values(inference.graph, 1);
    const VariableStore& trained = session.variables();
    for (const NodeId id : values.all()) values.set(id, trained.get(trained.find(values.node(id).name)));
    EXPECT_EQ(export_error({"mobile", inference.graph, inference.images, inference.logits, values}), "") << name;
  }
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
  EXPECT_NE(error(dropout(images, 0.5f, "drop")).find("'drop': trireme cannot export dropout to ONNX"),
            std::string::npos);
  EXPECT_NE(error(square(images)).find("cannot export square"), std::string::npos);
  EXPECT_NE(error(images + placeholder(graph, {1, 2}, "more")).find("'more'"), std::string::npos);

  const Tensor large = variable(graph, {1 << 28, 2}, op::Initializer::constant(0), "large");
  EXPECT_NE(error(fully_connected(images, large)).find("its variables take 2.1 GB"), std::string::npos);
}

}  // namespace
}  // namespace trireme::onnx
