// The sizes between the layers that the papers and tf_cnn_benchmarks state, by the name of the node.
#include <gtest/gtest.h>

#include "trireme/models/model.hpp"

namespace trireme {
namespace {

struct Stated {
  const char* model;
  const char* node;
  std::int64_t channels;
  std::int64_t size;
};

void PrintTo(const Stated& stated, std::ostream* stream) { *stream << stated.model << ' ' << stated.node; }

class Shapes : public testing::TestWithParam<Stated> {};

TEST_P(Shapes, AreTheStatedOnes) {
  Graph graph;
  build_model(graph, GetParam().model, {.batch_size = 2});
  const Shape expected{2, GetParam().channels, GetParam().size, GetParam().size};
  for (const Node& node : graph.nodes()) {
    if (node.name != GetParam().node) continue;
    EXPECT_EQ(to_string(node.outputs[0].shape), to_string(expected));
    return;
  }
  FAIL() << "no node " << GetParam().node;
}

INSTANTIATE_TEST_SUITE_P(
    Models, Shapes,
    testing::Values(
        Stated{"alexnet", "conv1/relu", 64, 55}, Stated{"alexnet", "pool1", 64, 27},
        Stated{"alexnet", "pool2", 192, 13}, Stated{"alexnet", "pool3", 256, 6},
        Stated{"alexnet_owt", "conv1/relu", 64, 55}, Stated{"alexnet_owt", "pool3", 256, 6},
        Stated{"alexnet_cifar", "pool1", 64, 16}, Stated{"alexnet_cifar", "pool2", 64, 8},
        Stated{"overfeat", "conv1/relu", 96, 56}, Stated{"overfeat", "pool1", 96, 28},
        Stated{"overfeat", "conv2/relu", 256, 24}, Stated{"overfeat", "pool2", 256, 12},
        Stated{"overfeat", "pool3", 1024, 6}, Stated{"vgg16", "stage5/pool1", 512, 7},
        Stated{"googlenet", "conv1/relu", 64, 112}, Stated{"googlenet", "inception3a/concat", 256, 28},
        Stated{"googlenet", "inception4e/concat", 832, 14}, Stated{"googlenet", "inception5b/concat", 1024, 7},
        Stated{"inception3", "pool2", 192, 35}, Stated{"inception3", "mixed_a3/concat", 288, 35},
        Stated{"inception3", "mixed_b/concat", 768, 17}, Stated{"inception3", "mixed_d/concat", 1280, 8},
        Stated{"inception3", "mixed_e2/concat", 2048, 8}, Stated{"inception4", "stem/mixed3/concat", 384, 35},
        Stated{"inception4", "reduction_a/concat", 1024, 17}, Stated{"inception4", "reduction_b/concat", 1536, 8},
        Stated{"inception4", "mixed_c3/concat", 1536, 8}, Stated{"resnet50", "conv1/relu", 64, 112},
        Stated{"resnet50", "pool1", 64, 56}, Stated{"resnet50", "stage1/block3/relu", 256, 56},
        Stated{"resnet50", "stage2/block1/conv1/relu", 128, 28},
        Stated{"resnet50_v1.5", "stage2/block1/conv1/relu", 128, 56}, Stated{"resnet50", "stage4/block3/relu", 2048, 7},
        Stated{"resnet20", "stage2/block1/shortcut", 32, 16}, Stated{"resnet110", "stage3/block18/relu", 64, 8},
        Stated{"vgg16@512", "stage5/pool1", 512, 16}, Stated{"amoebanet_d_3_16", "cell1/concat", 24, 56},
        Stated{"amoebanet_d_3_16", "cell3/concat", 64, 28}, Stated{"amoebanet_d_3_16", "cell7/concat", 256, 7},
        Stated{"amoebanet_d_3_16@331", "cell2/concat", 48, 42},
        Stated{"amoebanet_d_3_16@331", "cell7/concat", 256, 11}));

}  // namespace
}  // namespace trireme
