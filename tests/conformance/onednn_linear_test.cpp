// Fully connected layers, matrix products and bias, oneDNN against the reference.
#include <gtest/gtest.h>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

struct FullyConnectedCase {
  const char* name;
  Shape src;
  std::int64_t out;

  Shape weights() const {
    Shape shape = src;
    shape[0] = out;
    return shape;
  }
  Shape dst() const { return {src[0], out}; }
  double inner() const { return static_cast<double>(src.elements() / src[0]); }
};

void PrintTo(const FullyConnectedCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnFullyConnected : public ::testing::TestWithParam<FullyConnectedCase> {};

TEST_P(OneDnnFullyConnected, ForwardAgreesWithTheReference) {
  const FullyConnectedCase& c = GetParam();
  for (const bool bias : {false, true}) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      std::vector<HostTensor> values{random_tensor(c.src, 1), random_tensor(c.weights(), 2)};
      if (bias) values.push_back(random_tensor({c.out}, 3));
      expect_same(OperationCase(op::FullyConnected{.bias = bias, .activation = activation}, std::move(values), {1}),
                  convolution_variants(), {.terms = c.inner() + 1});
    }
  }
}

TEST_P(OneDnnFullyConnected, BackwardDataAgreesWithTheReference) {
  const FullyConnectedCase& c = GetParam();
  expect_same(OperationCase(op::FullyConnectedBackwardData{c.src},
                            {random_tensor(c.dst(), 4), random_tensor(c.weights(), 5)}, {1}),
              convolution_variants(), {.terms = static_cast<double>(c.out)});
}

TEST_P(OneDnnFullyConnected, BackwardWeightsAgreesWithTheReference) {
  const FullyConnectedCase& c = GetParam();
  for (const bool bias : {false, true}) {
    expect_same(
        OperationCase(op::FullyConnectedBackwardWeights{bias}, {random_tensor(c.src, 6), random_tensor(c.dst(), 7)}),
        convolution_variants(), {.terms = static_cast<double>(c.src[0])});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OneDnnFullyConnected,
                         ::testing::Values(FullyConnectedCase{"2D", {5, 70}, 33},
                                           FullyConnectedCase{"batch 1", {1, 128}, 10},
                                           FullyConnectedCase{"image", {3, 32, 3, 4}, 21},
                                           FullyConnectedCase{"image with odd channels", {2, 19, 3, 2}, 16},
                                           FullyConnectedCase{"one position", {4, 48, 1, 1}, 17},
                                           FullyConnectedCase{"three axes", {2, 6, 5}, 9},
                                           FullyConnectedCase{"one value", {3, 1}, 1},
                                           FullyConnectedCase{"wide", {2, 1030}, 257}),
                         [](const auto& tested) { return "Case" + std::to_string(tested.index); });

TEST(OneDnnMatMul, AgreesWithTheReferenceForEveryTransposition) {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{5, 7, 9}, {1, 33, 1}, {64, 1, 17}, {40, 100, 50}}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        const Shape a_shape = a ? Shape{k, m} : Shape{m, k};
        const Shape b_shape = b ? Shape{n, k} : Shape{k, n};
        expect_same(OperationCase(op::MatMul{.transpose_a = a, .transpose_b = b},
                                  {random_tensor(a_shape, 1), random_tensor(b_shape, 2)}),
                    {{.name = "plain"}}, {.terms = static_cast<double>(k)});
      }
    }
  }
}

const Shape kBiasShapes[] = {{2, 32, 5, 7}, {1, 19, 3, 3},   {3, 200, 2, 2}, {4, 10},
                             {2, 5, 4},     {3, 17, 40, 41}, {2, 6, 1, 1}};

TEST(OneDnnBias, AgreesWithTheReference) {
  for (const Shape& shape : kBiasShapes) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      expect_same(OperationCase(op::Bias{activation}, {random_tensor(shape, 1), random_tensor({shape[1]}, 2)}),
                  {.terms = 2});
    }
  }
}

TEST(OneDnnBias, BackwardAgreesWithTheReference) {
  for (const Shape& shape : kBiasShapes) {
    expect_same(OperationCase(op::BiasBackward{}, {random_tensor(shape, 3)}),
                {.terms = static_cast<double>(shape.elements() / shape[1])});
  }
}

}  // namespace
}  // namespace trireme::testkit
