// Fully connected layers, by the library and by the backend's own loops, matrix products and bias, against the
// reference.
#include <gtest/gtest.h>

#include "operation_check.hpp"
#include "trireme/backend/onednn/vectors.hpp"

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

// The three directions with all that can be joined to them.
std::vector<SummedOperation> forms(const FullyConnectedCase& c) {
  std::vector<SummedOperation> forms;
  for (const bool bias : {false, true}) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      std::vector<HostTensor> values{random_tensor(c.src, 1), random_tensor(c.weights(), 2)};
      if (bias) values.push_back(random_tensor({c.out}, 3));
      forms.push_back(
          {{op::FullyConnected{.bias = bias, .activation = activation}, std::move(values), {1}}, c.inner() + 1});
    }
    forms.push_back({{op::FullyConnectedBackwardWeights{bias}, {random_tensor(c.src, 6), random_tensor(c.dst(), 7)}},
                     static_cast<double>(c.src[0])});
  }
  forms.push_back(
      {{op::FullyConnectedBackwardData{c.src}, {random_tensor(c.dst(), 4), random_tensor(c.weights(), 5)}, {1}},
       static_cast<double>(c.out)});
  return forms;
}

class TestedFullyConnected : public ::testing::TestWithParam<FullyConnectedCase> {};

TEST_P(TestedFullyConnected, AgreesWithTheReference) {
  for (const auto& [operation, terms] : forms(GetParam())) {
    expect_same(operation, convolution_variants(), {.terms = terms});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TestedFullyConnected,
                         ::testing::Values(FullyConnectedCase{"two_axes", {5, 70}, 33},
                                           FullyConnectedCase{"batch_1", {1, 128}, 10},
                                           FullyConnectedCase{"image", {3, 32, 3, 4}, 21},
                                           FullyConnectedCase{"image_with_odd_channels", {2, 19, 3, 2}, 16},
                                           FullyConnectedCase{"one_position", {4, 48, 1, 1}, 17},
                                           FullyConnectedCase{"three_axes", {2, 6, 5}, 9},
                                           FullyConnectedCase{"one_value", {3, 1}, 1},
                                           FullyConnectedCase{"wide", {2, 1030}, 257}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// The backend's own loops where they must be offered.
class TestedOwnLinear : public ::testing::TestWithParam<FullyConnectedCase> {};

TEST_P(TestedOwnLinear, AgreesWithTheReference) {
  if (tested_backend_name() != "onednn" || tested_backend() == nullptr) GTEST_SKIP() << "loops of oneDNN's backend";
  if (!onednn::has_avx2() && !onednn::has_avx512()) GTEST_SKIP() << "no own loops for this CPU";
  for (const auto& [operation, terms] : forms(GetParam())) {
    const int offered = expect_same_forced(operation, convolution_variants(), {.terms = terms}, {.force = "own"});
    EXPECT_GT(offered, 0) << operation.describe();
  }
}

// Batches around the tiles' extents, rows and columns that no tile divides.
INSTANTIATE_TEST_SUITE_P(Shapes, TestedOwnLinear,
                         ::testing::Values(FullyConnectedCase{"one_sample_one_row", {1, 16}, 1},
                                           FullyConnectedCase{"tiles_exactly", {8, 96}, 48},
                                           FullyConnectedCase{"three_samples", {3, 80}, 49},
                                           FullyConnectedCase{"nine_samples", {9, 1040}, 50},
                                           FullyConnectedCase{"many_samples", {32, 64}, 107},
                                           FullyConnectedCase{"several_pieces", {6, 2064}, 97},
                                           FullyConnectedCase{"image", {5, 32, 3, 4}, 21},
                                           FullyConnectedCase{"padded_channels", {2, 19, 4, 4}, 18},
                                           FullyConnectedCase{"around_the_cache", {2, 2080}, 4100}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(TestedOwnLinearChoice, TakesNoLargeBatchesAndNoPartialVectors) {
  if (tested_backend() == nullptr) GTEST_SKIP() << "nothing to test: see tested_backend()";
  for (const Shape& src : {Shape{33, 64}, Shape{4, 70}}) {
    const OperationCase operation(op::FullyConnected{}, {random_tensor(src, 1), random_tensor({10, src[1]}, 2)}, {1});
    EXPECT_EQ(expect_same_forced(operation, convolution_variants(), {.terms = 71}, {.force = "own"}), 0)
        << to_string(src);
  }
}

TEST(TestedOwnLinearChoice, IsTheLibrarysWithoutTuning) {
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << "nothing to test: see tested_backend()";
  const OperationCase operation(op::FullyConnected{}, {random_tensor({4, 64}, 1), random_tensor({10, 64}, 2)}, {1});
  EXPECT_NE(KernelRun(*backend, operation, {.name = "plain"}).choice().implementation, "own");
}

TEST(TestedMatMul, AgreesWithTheReferenceForEveryTransposition) {
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

TEST(TestedBias, AgreesWithTheReference) {
  for (const Shape& shape : kBiasShapes) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      expect_same(OperationCase(op::Bias{activation}, {random_tensor(shape, 1), random_tensor({shape[1]}, 2)}),
                  {.terms = 2});
    }
  }
}

TEST(TestedBias, BackwardAgreesWithTheReference) {
  for (const Shape& shape : kBiasShapes) {
    expect_same(OperationCase(op::BiasBackward{}, {random_tensor(shape, 3)}),
                {.terms = static_cast<double>(shape.elements() / shape[1])});
  }
}

}  // namespace
}  // namespace trireme::testkit
