// Every network against the published counts of parameters, gradient tensors and multiply-adds.
#include <gtest/gtest.h>

#include <set>

#include "trireme/base/error.hpp"
#include "trireme/models/model.hpp"

namespace trireme {
namespace {

struct Expected {
  const char* model;
  std::int64_t classes;
  std::int64_t parameters;
  std::int64_t gradient_tensors;
  double gmacs;  // forward, per image, to the printed three digits
  bool aux_head = false;
};

void PrintTo(const Expected& expected, std::ostream* stream) { *stream << expected.model; }

class Counts : public testing::TestWithParam<Expected> {};

TEST_P(Counts, AreThePublishedOnes) {
  const Expected& expected = GetParam();
  Graph graph;
  const Model model = build_model(graph, expected.model, {.batch_size = 2, .aux_head = expected.aux_head});
  EXPECT_EQ(model.info.classes, expected.classes);
  const ModelCounts counts = count(graph, model);
  EXPECT_EQ(counts.parameters, expected.parameters);
  EXPECT_EQ(counts.gradient_tensors, expected.gradient_tensors);
  EXPECT_NEAR(counts.forward_macs / 1e9, expected.gmacs, 0.0005);
}

TEST_P(Counts, EveryTrainableVariableHasAGradient) {
  Graph graph;
  const Model model = build_model(graph, GetParam().model, {.batch_size = 2, .aux_head = GetParam().aux_head});
  const std::vector<Tensor> variables = graph.trainable_variables();
  const std::vector<Tensor> result = gradients(graph, model.loss, variables);
  ASSERT_EQ(result.size(), static_cast<std::size_t>(GetParam().gradient_tensors));
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_TRUE(result[i]) << graph.node(variables[i]).name;
    EXPECT_EQ(result[i].shape(), variables[i].shape()) << graph.node(variables[i]).name;
  }
  // The backward pass is no part of the counts.
  EXPECT_NEAR(count(graph, model).forward_macs / 1e9, GetParam().gmacs, 0.0005);
}

const Expected kTable[] = {
    {"trivial", 1001, 4'263'877, 6, 0.004},
    {"lenet", 1001, 2'173'353, 8, 0.014},
    {"mnist", 10, 3'274'634, 8, 0.014},
    {"alexnet", 1001, 61'842'345, 16, 0.839},
    {"alexnet_owt", 1000, 61'100'840, 16, 0.714},
    {"overfeat", 1001, 145'924'969, 16, 2.801},
    {"vgg11", 1001, 132'867'433, 22, 7.609},
    {"vgg16", 1001, 138'361'641, 32, 15.470},
    {"vgg19", 1001, 143'671'337, 38, 19.632},
    {"googlenet", 1001, 6'999'577, 116, 1.583},
    {"inception3", 1001, 23'819'401, 190, 5.713},
    {"inception3", 1001, 27'145'970, 196, 5.719, true},
    {"inception4", 1001, 42'649'769, 300, 12.254},
    {"resnet50", 1001, 25'559'081, 161, 3.858},
    {"resnet50_v1.5", 1001, 25'559'081, 161, 4.089},
    {"resnet50_v2", 1001, 25'536'361, 138, 3.858},
    {"resnet101", 1001, 44'551'209, 314, 7.570},
    {"resnet152", 1001, 60'194'857, 467, 11.282},
    {"resnet20", 11, 269'787, 59, 0.041},
    {"resnet32", 11, 464'219, 95, 0.069},
    {"resnet44", 11, 658'651, 131, 0.097},
    {"resnet56", 11, 853'083, 167, 0.125},
    {"resnet110", 11, 1'728'027, 329, 0.253},
    {"alexnet_cifar", 11, 1'756'619, 10, 0.033},
    {"amoebanet_d_18_208", 1000, 81'505'540, 831, 10.019},  // all three by a program of its own; see also below
};

std::string test_name(const testing::TestParamInfo<Expected>& info) {
  std::string name = info.param.model;
  if (info.param.aux_head) name += "_aux_head";
  for (char& c : name) {
    if (c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Counts, testing::ValuesIn(kTable), test_name);

// The counts of the deep v2 networks follow from those of v1: see below.
TEST(CountsOfTheCatalogue, CoverEveryModel) {
  std::set<std::string> covered{"resnet101_v2", "resnet152_v2"};
  for (const Expected& expected : kTable) covered.insert(expected.model);
  for (const Network& info : model_list()) EXPECT_TRUE(covered.contains(info.name)) << info.name;
}

// A v2 network has the convolutions of v1. Per block it trades the last batch norm (gamma and beta of 4·middle
// channels) for one beta over the block's input; per stage it drops the shortcut's batch norm; one beta of 2048 closes
// it.
TEST(CountsOfResnetV2, FollowFromV1) {
  struct Case {
    const char* v1;
    const char* v2;
    std::array<std::int64_t, 4> depths;
  };
  for (const Case& c : {Case{"resnet50", "resnet50_v2", {3, 4, 6, 3}}, Case{"resnet101", "resnet101_v2", {3, 4, 23, 3}},
                        Case{"resnet152", "resnet152_v2", {3, 8, 36, 3}}}) {
    std::int64_t parameters = 2048;
    std::int64_t tensors = 1;
    std::int64_t in = 64;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const std::int64_t out = std::int64_t{256} << stage;
      const std::int64_t blocks = c.depths[stage];
      parameters += in + (blocks - 1) * out - 2 * out * (blocks + 1);
      tensors += blocks - 2 * (blocks + 1);
      in = out;
    }
    Graph graph_v1, graph_v2;
    const ModelCounts v1 = count(graph_v1, build_model(graph_v1, c.v1, {.batch_size = 1}));
    const ModelCounts v2 = count(graph_v2, build_model(graph_v2, c.v2, {.batch_size = 1}));
    EXPECT_EQ(v2.parameters, v1.parameters + parameters) << c.v2;
    EXPECT_EQ(v2.gradient_tensors, v1.gradient_tensors + tensors) << c.v2;
    EXPECT_DOUBLE_EQ(v2.forward_macs, v1.forward_macs) << c.v2;
  }
}

// ResNet v2 with 29 layers: the number that Keras prints; deeper ones: counted by a program of its own.
TEST(KerasResnets, HaveTheCountsOfKeras) {
  for (const auto& [name, parameters] :
       {std::pair("resnet29_v2", 843'786), std::pair("resnet110_v2", 3'302'442), std::pair("resnet1001_v2", 30'347'658),
        std::pair("resnet5000_v2", 151'641'354)}) {
    Graph graph;
    EXPECT_EQ(count(graph, build_model(graph, name, {.batch_size = 1})).parameters, parameters) << name;
  }
  EXPECT_EQ(&find_model("resnet29_v2"), &find_model("resnet29_v2"));
  EXPECT_NE(find_model("resnet101_v2").image_size, 32) << "ImageNet's has this name";
  EXPECT_THROW(find_model("resnet30_v2"), Error);
}

TEST(KerasResnets, HyparFlowsResnet5000Has4997Layers) {
  Graph graph;
  build_model(graph, "resnet5000_v2", {.batch_size = 1});
  // The convolutions on the way through and the classifier; those of the three shortcuts do not count.
  int layers = 1 - 3;
  for (const Node& node : graph.nodes()) layers += node.as<op::Convolution>() != nullptr ? 1 : 0;
  EXPECT_EQ(layers, 4997);
  EXPECT_NE(find_model("resnet5000_v2").description.find("4997 layers"), std::string::npos);
}

// In millions of parameters, with 1000 classes. torchgpipe's counts to the printed digits (its memory benchmark), which
// leaves out the auxiliary head as this library does; GPipe's (Huang et al., table 1) within 3 %: it prints 1.8
// billion.
TEST(AmoebaNets, HaveThePublishedCounts) {
  struct Case {
    const char* name;
    double torchgpipe, printed_to, gpipe;
  };
  for (const Case& c : {Case{"amoebanet_d_18_208", 81.5, 0.05, 82}, Case{"amoebanet_d_18_416", 319.0, 0.05, 318},
                        Case{"amoebanet_d_18_544", 542.7, 0.05, 542}, Case{"amoebanet_d_36_544", 1'060, 5, 1'050},
                        Case{"amoebanet_d_72_512", 1'840, 5, 1'800}}) {
    Graph graph;
    const double millions =
        static_cast<double>(count(graph, build_model(graph, c.name, {.batch_size = 1})).parameters) / 1e6;
    EXPECT_NEAR(millions, c.torchgpipe, c.printed_to) << c.name;
    EXPECT_NEAR(millions, c.gpipe, 0.03 * c.gpipe) << c.name;
  }
  for (const char* name :
       {"amoebanet_d_18", "amoebanet_d_17_208", "amoebanet_d_18_20", "amoebanet_d_", "amoebanet_d_0_8"})
    EXPECT_THROW(find_model(name), Error) << name;
}

TEST(CountsOfClasses, ChangeTheClassifierAlone) {
  Graph graph;
  const Model model = build_model(graph, "resnet50", {.batch_size = 1, .num_classes = 1000});
  EXPECT_EQ(model.info.classes, 1000);
  EXPECT_EQ(model.logits.shape(), (Shape{1, 1000}));
  EXPECT_EQ(count(graph, model).parameters, 25'559'081 - 2049);
  EXPECT_EQ(count(graph, model).gradient_tensors, 161);
}

TEST(CountsOfClasses, ChangeBothClassifiersOfTheAuxiliaryHead) {
  Graph graph;
  const Model model = build_model(graph, "inception3", {.batch_size = 1, .num_classes = 1000, .aux_head = true});
  EXPECT_EQ(count(graph, model).parameters, 27'145'970 - 2049 - 769);
}

}  // namespace
}  // namespace trireme
