// Activations, arithmetic, dropout and broadcasting, each backend against the reference.
#include <gtest/gtest.h>

#include <array>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

using op::UnaryKind;

struct UnaryCase {
  UnaryKind kind;
  float low = -4, high = 4;
  float alpha = 0, beta = 0;
  double relative = 0;  // what the library's approximation is allowed
};

const UnaryCase kUnaries[] = {
    {UnaryKind::relu},
    {.kind = UnaryKind::leaky_relu, .alpha = 0.1f},
    {.kind = UnaryKind::elu, .alpha = 0.7f, .relative = 4e-6},
    {.kind = UnaryKind::sigmoid, .relative = 4e-6},
    {.kind = UnaryKind::tanh, .relative = 4e-6},
    {.kind = UnaryKind::softplus, .relative = 4e-6},
    {.kind = UnaryKind::swish, .relative = 4e-6},
    {.kind = UnaryKind::gelu, .relative = 4e-6},
    {UnaryKind::abs},
    {UnaryKind::square},
    {.kind = UnaryKind::sqrt, .low = 0.01f, .high = 9},
    {.kind = UnaryKind::exp, .relative = 4e-6},
    {.kind = UnaryKind::log, .low = 0.05f, .high = 20},
    {UnaryKind::negate},
    {.kind = UnaryKind::clip, .alpha = -0.7f, .beta = 2.1f},
    {.kind = UnaryKind::affine, .alpha = 0.3f, .beta = 0.6f},
};

const Shape kShapes[] = {{2, 32, 5, 7}, {1, 19, 3, 4}, {3, 70}, {65}, {}};

TEST(TestedUnary, EveryKindAgreesWithTheReference) {
  for (const UnaryCase& c : kUnaries) {
    for (const Shape& shape : kShapes) {
      expect_same(OperationCase(op::Unary{c.kind, c.alpha, c.beta}, {random_tensor(shape, 1, c.low, c.high)}),
                  {.terms = 2, .magnitude = 4, .relative = c.relative});
    }
  }
}

TEST(TestedUnary, EveryBackwardAgreesWithTheReference) {
  for (const UnaryCase& c : kUnaries) {
    for (const Shape& shape : kShapes) {
      HostTensor data = random_tensor(shape, 1, c.low, c.high);
      if (op::backward_uses_dst(c.kind)) {
        KernelRun forward(*make_backend("reference"), OperationCase(op::Unary{c.kind, c.alpha, c.beta}, {data}),
                          {.name = "reference"});
        forward.run();
        data = forward.output(0);
      }
      expect_same(OperationCase(op::UnaryBackward{c.kind, c.alpha, c.beta}, {random_tensor(shape, 2), data}),
                  {.terms = 4, .magnitude = 4, .relative = c.relative});
    }
  }
}

constexpr op::BinaryKind kBinaries[] = {op::BinaryKind::add,    op::BinaryKind::subtract,     op::BinaryKind::multiply,
                                        op::BinaryKind::divide, op::BinaryKind::maximum,      op::BinaryKind::minimum,
                                        op::BinaryKind::equal,  op::BinaryKind::greater_equal};

TEST(TestedBinary, EveryKindAgreesWithTheReference) {
  const std::array<Shape, 2> pairs[] = {{Shape{2, 32, 5, 7}, Shape{2, 32, 5, 7}},
                                        {Shape{1, 19, 3, 4}, Shape{1, 19, 3, 4}},
                                        {Shape{2, 19, 3, 4}, Shape{}},
                                        {Shape{}, Shape{2, 16, 3, 4}},
                                        {Shape{2, 7, 3, 4}, Shape{7, 1, 1}},
                                        {Shape{3, 1}, Shape{1, 5}},
                                        {Shape{4, 5}, Shape{5}},
                                        {Shape{1}, Shape{1, 1}},
                                        {Shape{}, Shape{}},
                                        {Shape{3, 1, 2, 1}, Shape{2, 1, 6}},
                                        {Shape{40000}, Shape{40000}}};
  for (const op::BinaryKind kind : kBinaries) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      for (const auto& [a, b] : pairs) {
        // Away from 0, for division.
        expect_same(
            OperationCase(op::Binary{kind, activation}, {random_tensor(a, 1, -2, 2), random_tensor(b, 2, 0.5f, 2)}),
            {.terms = 2});
      }
    }
  }
}

// 19 channels are padded to 32 in this layout.
TEST(TestedBinary, BlockedTensorsStayBlockedWherePaddingStaysZero) {
  const auto backend = tested_backend();
  if (!backend || backend->name() != "onednn") GTEST_SKIP() << "no other backend has blocked layouts";
  const HostTensor tensor = random_tensor({2, 19, 3, 4}, 1), scalar = random_tensor({}, 2);
  // Variables are there in plain order.
  const Variant variant{.name = "blocked16", .activations = blocked(16), .variables_open = false};
  const auto layout_of = [&](op::BinaryKind kind, const std::vector<HostTensor>& values, std::vector<int> plain) {
    const OperationCase operation(op::Binary{kind}, values, std::move(plain));
    expect_same(operation, {variant}, {.terms = 2});
    return KernelRun(*backend, operation, variant).choice().outputs[0];
  };
  EXPECT_EQ(layout_of(op::BinaryKind::add, {tensor, tensor}, {0}), blocked(16));
  EXPECT_EQ(layout_of(op::BinaryKind::add, {tensor, tensor}, {1}), blocked(16));
  EXPECT_EQ(layout_of(op::BinaryKind::add, {tensor, tensor}, {0, 1}), Layout::plain(4));
  EXPECT_EQ(layout_of(op::BinaryKind::multiply, {tensor, scalar}, {}), blocked(16));
  EXPECT_EQ(layout_of(op::BinaryKind::multiply, {scalar, tensor}, {}), blocked(16));
  EXPECT_EQ(layout_of(op::BinaryKind::add, {tensor, scalar}, {}), Layout::plain(4));
}

TEST(TestedBinary, EqualElementsAreEqual) {
  const HostTensor value = random_tensor({2, 5, 3, 3}, 1);
  expect_same(OperationCase(op::Binary{op::BinaryKind::equal}, {value, value}), {});
  expect_same(OperationCase(op::Binary{op::BinaryKind::greater_equal}, {value, value}), {});
}

TEST(TestedDropout, MaskIsTheReferencesBitForBit) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  for (const Shape& shape : {Shape{3, 19, 4, 5}, {2, 32, 3, 3}, {5, 33}, {2, 1000}, {2, 3, 5}}) {
    const OperationCase operation(op::Dropout{.rate = 0.4f, .key = 77}, {random_tensor(shape, 1, 1, 2)});
    for (const RunContext& context : {RunContext{}, RunContext{.seed = 5, .step = 9, .sample_offset = 64}}) {
      KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
      reference.run(context);
      for (const Variant& variant : layout_variants()) {
        for (const int in_place : {-1, 0}) {
          KernelRun run(*backend, operation, variant, in_place);
          run.run(context);
          const HostTensor actual = run.output(0), expected = reference.output(0);
          EXPECT_TRUE(std::equal(actual.f32().begin(), actual.f32().end(), expected.f32().begin()))
              << operation.describe() << " | " << variant.name << " | step " << context.step;
          EXPECT_TRUE(run.padding_is_zero(0)) << operation.describe() << " | " << variant.name;
        }
      }
    }
  }
}

TEST(TestedBroadcast, AgreesWithTheReference) {
  const std::array<Shape, 2> pairs[] = {{Shape{2, 19, 1, 1}, Shape{2, 19, 4, 3}},
                                        {Shape{2, 32, 1, 1}, Shape{2, 32, 4, 3}},
                                        {Shape{}, Shape{7}},
                                        {Shape{5}, Shape{3, 5}},
                                        {Shape{3, 1}, Shape{3, 4}},
                                        {Shape{1, 4, 1}, Shape{2, 3, 4, 5}},
                                        {Shape{}, Shape{}},
                                        {Shape{2, 3}, Shape{2, 3}}};
  for (const auto& [from, to] : pairs) {
    expect_same(OperationCase(op::Broadcast{.shape = to, .scale = 0.3f}, {random_tensor(from, 1)}),
                convolution_variants(), {});
  }
}

}  // namespace
}  // namespace trireme::testkit
