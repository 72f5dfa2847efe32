// The catalogue, the options of build_model, and what every built network has in common.
#include "trireme/models/model.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

template <typename Op>
int count_nodes(const Graph& graph) {
  int found = 0;
  for (const Node& node : graph.nodes()) found += node.as<Op>() != nullptr ? 1 : 0;
  return found;
}

// The message of the error that build_model throws; an empty one where it throws none.
std::string build_error(std::string_view name, const ModelOptions& options) {
  Graph graph;
  try {
    build_model(graph, name, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

std::string find_error(std::string_view name) {
  try {
    find_model(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(FindModel, GivesTheModelsOwnSizes) {
  const Network& info = find_model("resnet50");
  EXPECT_EQ(info.image_size, 224);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.classes, 1001);
  EXPECT_EQ(info.batch_size, 64);
  EXPECT_EQ(find_model("alexnet").batch_size, 512);
  EXPECT_EQ(find_model("mnist").channels, 1);
}

TEST(FindModel, SuggestsTheNearestAndListsAll) {
  const std::string message = find_error("resnet51");
  EXPECT_NE(message.find("'resnet51'; did you mean 'resnet50'?"), std::string::npos) << message;
  for (const Network& info : model_list()) EXPECT_NE(message.find(info.name), std::string::npos) << info.name;
}

TEST(FindModel, TakesAnotherImageSize) {
  const Network& large = find_model("vgg16@512");
  EXPECT_EQ(large.name, "vgg16@512");
  EXPECT_EQ(large.image_size, 512);
  EXPECT_EQ(large.classes, find_model("vgg16").classes);
  EXPECT_EQ(find_model("amoebanet_d_3_16@512").image_size, 512);
  for (const char* name : {"vgg16@", "vgg16@0", "vgg16@-1", "vgg16@99999", "vgg17@64", "@64"})
    EXPECT_NE(find_error(name).find("<model>@<size>"), std::string::npos) << name;
}

TEST(FindModel, SeesThroughOtherSpellings) {
  EXPECT_NE(find_error("ResNet-101").find("did you mean 'resnet101'?"), std::string::npos);
  EXPECT_NE(find_error("Inception_V3").find("did you mean 'inception3'?"), std::string::npos);
  EXPECT_NE(find_error("VGG 19").find("did you mean 'vgg19'?"), std::string::npos);
  EXPECT_NE(find_error("").find("unknown model ''"), std::string::npos);
}

TEST(BuildModel, RefusesImpossibleOptions) {
  EXPECT_NE(build_error("lenet", {.batch_size = 0}).find("batch size must be at least 1, got 0"), std::string::npos);
  EXPECT_NE(build_error("lenet", {.batch_size = -4}).find("got -4"), std::string::npos);
  EXPECT_NE(build_error("lenet", {.num_classes = 1}).find("classes must be at least 2"), std::string::npos);
  EXPECT_NE(build_error("lenet", {.num_classes = -1}).find("got -1"), std::string::npos);
  EXPECT_NE(build_error("resnet50", {.aux_head = true}).find("only inception3 has"), std::string::npos);
  EXPECT_NE(build_error("lenet", {.label_smoothing = 1}).find("[0, 1)"), std::string::npos);
  EXPECT_NE(build_error("lenet", {.label_smoothing = std::numeric_limits<float>::quiet_NaN()}).find("[0, 1)"),
            std::string::npos);
  EXPECT_NE(build_error("resnet-50", {}).find("did you mean 'resnet50'"), std::string::npos);
}

TEST(BuildModel, TakesTopFiveOfFewerClasses) {
  Graph graph;
  const Model model = build_model(graph, "lenet", {.batch_size = 1, .num_classes = 3});
  EXPECT_EQ(graph.node(model.top5).as<op::TopKAccuracy>()->k, 3);
  EXPECT_EQ(graph.node(model.top1).as<op::TopKAccuracy>()->k, 1);
}

TEST(BuildModel, DropoutCanBeLeftOutOfTraining) {
  Graph with, without;
  build_model(with, "alexnet", {.batch_size = 1});
  build_model(without, "alexnet", {.batch_size = 1, .dropout = false});
  EXPECT_EQ(count_nodes<op::Dropout>(with), 2);
  EXPECT_EQ(count_nodes<op::Dropout>(without), 0);
}

TEST(BuildModel, InceptionV4DropsAFifth) {
  Graph graph;
  build_model(graph, "inception4", {.batch_size = 1});
  ASSERT_EQ(count_nodes<op::Dropout>(graph), 1);
  for (const Node& node : graph.nodes()) {
    if (const auto* dropout = node.as<op::Dropout>()) {
      EXPECT_FLOAT_EQ(dropout->rate, 0.2f);
    }
  }
}

TEST(BuildModel, InferenceLeavesTheAuxiliaryHeadOut) {
  Graph graph;
  const Model model = build_model(graph, "inception3", {.batch_size = 1, .training = false, .aux_head = true});
  EXPECT_EQ(count(graph, model).gradient_tensors, 190);
}

TEST(BuildModel, SideUpdatesAreTwoPerBatchNorm) {
  Graph graph;
  build_model(graph, "resnet50", {.batch_size = 1});
  EXPECT_EQ(count_nodes<op::BatchNorm>(graph), 53);
  EXPECT_EQ(graph.side_updates.size(), 106u);
}

TEST(BuildModel, NamesSayWhereALayerIs) {
  Graph graph;
  build_model(graph, "resnet50", {.batch_size = 1});
  std::set<std::string> names;
  for (const NodeId id : graph.variables()) names.insert(graph.node(id).name);
  EXPECT_TRUE(names.contains("conv1/weights"));
  EXPECT_TRUE(names.contains("stage2/block1/conv2/weights"));
  EXPECT_TRUE(names.contains("stage2/block1/shortcut/gamma"));
  EXPECT_TRUE(names.contains("stage4/block3/conv3/running_variance"));
  EXPECT_TRUE(names.contains("logits/bias"));
}

class EveryModel : public testing::TestWithParam<Network> {};

TEST_P(EveryModel, HasTheInputsAndOutputsOfItsDescription) {
  const Network& info = GetParam();
  for (const bool training : {true, false}) {
    Graph graph;
    const Model model = build_model(graph, info.name, {.batch_size = 3, .training = training});
    EXPECT_EQ(model.images.shape(), (Shape{3, info.channels, info.image_size, info.image_size}));
    EXPECT_EQ(model.labels.type(), (TensorType{DataType::i32, {3}}));
    EXPECT_EQ(model.logits.shape(), (Shape{3, info.classes}));
    for (const Tensor scalar : {model.loss, model.top1, model.top5}) EXPECT_EQ(scalar.shape(), Shape{});
    EXPECT_FALSE(info.description.empty());
  }
}

TEST_P(EveryModel, InferenceHasNoDropoutAndNoBatchStatistics) {
  Graph training, inference;
  build_model(training, GetParam().name, {.batch_size = 1});
  build_model(inference, GetParam().name, {.batch_size = 1, .training = false});
  EXPECT_EQ(count_nodes<op::Dropout>(inference), 0);
  EXPECT_EQ(count_nodes<op::BatchNorm>(inference), 0);
  EXPECT_TRUE(inference.side_updates.empty());
  EXPECT_EQ(count_nodes<op::BatchNormInference>(inference), count_nodes<op::BatchNorm>(training));
}

// A checkpoint of training is read by evaluation: the same variables, by the same names.
TEST_P(EveryModel, VariablesHaveUniqueNamesThatInferenceShares) {
  Graph training, inference;
  build_model(training, GetParam().name, {.batch_size = 1});
  build_model(inference, GetParam().name, {.batch_size = 1, .training = false});
  std::set<std::string> names, inference_names;
  for (const NodeId id : training.variables()) names.insert(training.node(id).name);
  for (const NodeId id : inference.variables()) inference_names.insert(inference.node(id).name);
  EXPECT_EQ(names.size(), training.variables().size());
  EXPECT_EQ(names, inference_names);
}

std::string test_name(const testing::TestParamInfo<Network>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (c == '.' || c == '@') c = '_';
  }
  return name;
}

std::vector<Network> listed_and_of_families() {
  std::vector<Network> networks = model_list();
  for (const char* name : {"resnet29_v2", "amoebanet_d_3_16", "vgg16@64"}) networks.push_back(find_model(name));
  return networks;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(listed_and_of_families()), test_name);

}  // namespace
}  // namespace trireme
