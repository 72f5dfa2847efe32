// Kernels that read and write bf16 or fp16, each backend against the reference in f32 on values that the type can hold.
//
// Tolerance. Both sides see the same values, and sums are taken in float as in fp32. What is left is the rounding of a
// result: half a unit, 2^-8 of it in bf16 and 2^-11 in fp16. Where more than one rounding happens, each is of a value
// of the size of the magnitude given: Tolerance::terms says how many, in units of 2^-24.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "operation_check.hpp"
#include "trireme/base/bfloat16.hpp"
#include "trireme/base/float16.hpp"

namespace trireme::testkit {
namespace {

class TestedHalf : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const auto backend = tested_backend();
    if (!backend || !backend->is_fast_in(GetParam())) GTEST_SKIP() << "this machine has no " << to_string(type());
  }

  static DataType type() { return stored_type(GetParam()); }
  static double half_unit() { return type() == DataType::bf16 ? 0x1.0p-8 : 0x1.0p-11; }
  static double roundings() { return half_unit() / 0x1.0p-24 / 4; }  // Tolerance::terms for one rounding

  static HostTensor rounded(Shape shape, std::uint64_t seed, float low = -1, float high = 1) {
    HostTensor value = random_tensor(std::move(shape), seed, low, high);
    for (float& x : value.f32()) x = type() == DataType::bf16 ? float{BFloat16(x)} : float{Float16(x)};
    return value;
  }

  static std::vector<Variant> variants() {
    std::vector<Variant> variants = layout_variants();
    for (Variant& variant : variants) variant.precision = GetParam();
    return variants;
  }

  // Also that there is a kernel for the type, in blocked layout at least: results are stored in it.
  static void check(const OperationCase& operation, const Tolerance& tolerance) { check(operation, tolerance, type()); }
  static void check(const OperationCase& operation, Tolerance tolerance, DataType result) {
    tolerance.relative += half_unit();
    const Variant blocks{.name = "blocked16", .activations = blocked(16), .precision = GetParam()};
    EXPECT_EQ(KernelRun(*tested_backend(), operation, blocks).choice().outputs[0].dtype, result)
        << operation.describe();
    expect_same(operation, variants(), tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Types, TestedHalf, ::testing::Values(Precision::bf16, Precision::fp16),
                         [](const auto& each) { return std::string(to_string(stored_type(each.param))); });

struct ConvolutionCase {
  Shape src, weights;
  op::Window window;
  std::int64_t groups = 1;

  Shape dst() const {
    return {src[0], weights[0], op::window_output(window, 0, src[2]), op::window_output(window, 1, src[3])};
  }
  double terms() const { return static_cast<double>(weights.elements() / weights[0]); }
};

const op::Window kSame{.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}};
const ConvolutionCase kConvolutions[] = {
    {{2, 32, 9, 8}, {48, 32, 3, 3}, kSame},
    {{2, 32, 8, 8}, {16, 32, 1, 1}, {.kernel = {1, 1}}},
    {{2, 64, 9, 9}, {32, 64, 1, 1}, {.kernel = {1, 1}, .stride = {2, 2}}},
    {{2, 3, 15, 15}, {16, 3, 7, 7}, {.kernel = {7, 7}, .stride = {2, 2}, .pad_before = {3, 3}, .pad_after = {3, 3}}},
    {{1, 19, 7, 7}, {21, 19, 3, 3}, kSame},
    {{2, 3, 16, 18}, {16, 3, 3, 3}, {.kernel = {3, 3}, .stride = {2, 2}, .pad_after = {1, 1}}},
    {{3, 1, 9, 11}, {8, 1, 2, 2}, {.kernel = {2, 2}, .stride = {2, 2}}},
    {{2, 32, 9, 8}, {32, 1, 3, 3}, kSame, 32},
    {{1, 24, 8, 8}, {24, 1, 5, 5}, {.kernel = {5, 5}, .stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {2, 2}}, 24},
};

TEST_P(TestedHalf, Convolution) {
  // Where bias, sum and ReLU are a kernel of their own after the convolution, its result was rounded before.
  const bool twice = tested_backend_name() == "cuda";
  for (const ConvolutionCase& c : kConvolutions) {
    const double rounded_before = twice ? roundings() * std::sqrt(c.terms()) : 0;
    check(OperationCase(op::Convolution{.window = c.window, .groups = c.groups},
                        {rounded(c.src, 1), rounded(c.weights, 2)}, {1}),
          {.terms = c.terms()});
    check(OperationCase(
              op::Convolution{.window = c.window, .groups = c.groups, .bias = true, .activation = op::Activation::relu},
              {rounded(c.src, 1), rounded(c.weights, 2), random_tensor({c.weights[0]}, 3)}, {1, 2}),
          {.terms = c.terms() + rounded_before});
    check(OperationCase(op::Convolution{.window = c.window, .groups = c.groups, .add = true},
                        {rounded(c.src, 1), rounded(c.weights, 2), rounded(c.dst(), 4)}, {1}),
          {.terms = c.terms() + roundings() + rounded_before, .magnitude = 2});
  }
}

TEST_P(TestedHalf, ConvolutionBackwardData) {
  for (const ConvolutionCase& c : kConvolutions) {
    const double terms = static_cast<double>(c.weights.elements() / c.weights[1] / c.groups);
    check(OperationCase(op::ConvolutionBackwardData{.window = c.window, .groups = c.groups, .src_shape = c.src},
                        {rounded(c.dst(), 1), rounded(c.weights, 2)}, {1}),
          {.terms = terms});
  }
}

TEST_P(TestedHalf, ConvolutionBackwardWeightsGivesF32) {
  for (const ConvolutionCase& c : kConvolutions) {
    for (const bool bias : {false, true}) {
      const OperationCase operation(
          op::ConvolutionBackwardWeights{
              .window = c.window, .groups = c.groups, .weights_shape = c.weights, .bias = bias},
          {rounded(c.src, 1), rounded(c.dst(), 2)});
      // cuDNN rounds to the type first where it has no kernel that writes f32.
      const bool rounds = tested_backend_name() == "cuda";
      const Tolerance tolerance{.terms = static_cast<double>(c.dst().elements() / c.weights[0]),
                                .relative = rounds ? half_unit() : 0};
      EXPECT_EQ(KernelRun(*tested_backend(), operation, variants()[2]).choice().outputs[0].dtype, DataType::f32);
      expect_same(operation, variants(), tolerance);
    }
  }
}

const Shape kShapes[] = {{2, 32, 5, 7}, {1, 19, 9, 3}, {5, 3, 50, 61}, {4, 16, 1, 1}};

TEST_P(TestedHalf, BatchNorm) {
  for (const Shape& shape : kShapes) {
    for (const bool add : {false, true}) {
      const op::Activation activation = add ? op::Activation::relu : op::Activation::none;
      std::vector<HostTensor> values{rounded(shape, 1, -2, 3), random_tensor({shape[1]}, 2, 0.5f, 2),
                                     random_tensor({shape[1]}, 3)};
      std::vector<HostTensor> inference = values;
      inference.push_back(random_tensor({shape[1]}, 4));
      inference.push_back(random_tensor({shape[1]}, 5, 0.1f, 3));
      if (add) values.push_back(rounded(shape, 6));
      if (add) inference.push_back(rounded(shape, 6));
      check(OperationCase(op::BatchNorm{.epsilon = 1e-3f, .add = add, .activation = activation}, std::move(values)),
            {.terms = 8, .magnitude = 4});
      check(OperationCase(op::BatchNormInference{.epsilon = 1e-3f, .add = add, .activation = activation},
                          std::move(inference)),
            {.terms = 32, .magnitude = 8});
    }
  }
}

TEST_P(TestedHalf, BatchNormBackward) {
  for (const Shape& shape : kShapes) {
    const auto per_channel = static_cast<double>(shape.elements() / shape[1]);
    for (const bool all : {false, true}) {
      std::vector<HostTensor> values{rounded(shape, 1, -2, 3), random_tensor({shape[1]}, 2, 0.3f, 0.7f),
                                     random_tensor({shape[1]}, 3, 1.5f, 2.5f), random_tensor({shape[1]}, 4, 0.5f, 2),
                                     rounded(shape, 5)};
      if (all) values.push_back(rounded(shape, 7));
      if (all) values.push_back(rounded(shape, 6));
      // With an addend, the gradient before the activation is rounded once more on its way.
      check(OperationCase(op::BatchNormBackward{.epsilon = 1e-3f,
                                                .add = all,
                                                .activation = all ? op::Activation::relu : op::Activation::none,
                                                .sum = all},
                          std::move(values)),
            {.terms = 8 + per_channel + (all ? 2 * roundings() : 0), .magnitude = 2});
    }
  }
}

TEST_P(TestedHalf, BiasAndItsGradient) {
  for (const Shape& shape : kShapes) {
    check(
        OperationCase(op::Bias{.activation = op::Activation::relu}, {rounded(shape, 1), random_tensor({shape[1]}, 2)}),
        {});
    check(OperationCase(op::BiasBackward{}, {rounded(shape, 1)}),
          {.terms = static_cast<double>(shape.elements() / shape[1])}, DataType::f32);
  }
}

TEST_P(TestedHalf, Elementwise) {
  for (const Shape& shape : kShapes) {
    for (const op::BinaryKind kind : {op::BinaryKind::add, op::BinaryKind::subtract, op::BinaryKind::multiply,
                                      op::BinaryKind::maximum, op::BinaryKind::minimum}) {
      check(OperationCase(op::Binary{.kind = kind}, {rounded(shape, 1), rounded(shape, 2)}), {});
    }
    check(OperationCase(op::Binary{.kind = op::BinaryKind::multiply}, {rounded(shape, 1), random_tensor({}, 2)}), {});
    check(OperationCase(op::Binary{.kind = op::BinaryKind::add, .activation = op::Activation::relu},
                        {rounded(shape, 1), rounded(shape, 2)}),
          {});
    check(OperationCase(op::Unary{.kind = op::UnaryKind::relu}, {rounded(shape, 1)}), {});
    check(OperationCase(op::UnaryBackward{.kind = op::UnaryKind::relu}, {rounded(shape, 1), rounded(shape, 2)}), {});
    check(OperationCase(op::Unary{.kind = op::UnaryKind::tanh}, {rounded(shape, 1)}), {.terms = roundings() / 8});
    check(OperationCase(op::Unary{op::UnaryKind::clip, -0.3f, 0.6f}, {rounded(shape, 1)}), {});
    check(OperationCase(op::UnaryBackward{op::UnaryKind::clip, -0.25f, 0.5f}, {rounded(shape, 1), rounded(shape, 2)}),
          {});
    check(OperationCase(op::Unary{op::UnaryKind::affine, 0.3f, 0.6f}, {rounded(shape, 1)}), {});
    check(OperationCase(op::Dropout{.rate = 0.5f, .key = 3}, {rounded(shape, 1)}), {});
  }
}

// In bf16 the ends are 0.10009766 and 0.69921875, both between 0.1 and 0.7.
TEST_P(TestedHalf, ClippedElementsGetNoGradient) {
  const op::UnaryBackward backward{op::UnaryKind::clip, 0.1f, 0.7f};
  const auto backend = tested_backend();
  for (const float end : {0.1f, 0.7f}) {
    KernelRun run(*backend, OperationCase(backward, {rounded({1, 16, 2, 2}, 1), rounded({1, 16, 2, 2}, 2, end, end)}),
                  {.name = "plain", .precision = GetParam()});
    run.run();
    EXPECT_EQ(std::ranges::count(run.output(0).f32(), 0), 64) << end;
  }
}

TEST_P(TestedHalf, Pooling) {
  for (const op::PoolKind kind :
       {op::PoolKind::max, op::PoolKind::average_inside, op::PoolKind::average_include_padding}) {
    for (const op::Window& window :
         {op::Window{.kernel = {2, 2}, .stride = {2, 2}},
          op::Window{.kernel = {3, 3}, .stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}}}) {
      const Shape shape{2, 32, 10, 12};
      const Shape pooled{2, 32, op::window_output(window, 0, 10), op::window_output(window, 1, 12)};
      const HostTensor src = rounded(shape, 1);
      const op::Pool pool{.kind = kind, .window = window};
      check(OperationCase(pool, {src}), {.terms = 9});
      std::vector<HostTensor> values{rounded(pooled, 2)};
      if (kind == op::PoolKind::max) {
        const auto reference = make_backend("reference");
        KernelRun run(*reference, OperationCase(pool, {src}), {.name = "reference"});
        run.run();
        values.push_back(src);
        values.push_back(run.output(0));
      }
      // Up to four windows that overlap add up in the type.
      check(OperationCase(op::PoolBackward{.kind = kind, .window = window, .src_shape = shape}, std::move(values)),
            {.terms = window.kernel[0] == 3 ? 4 * roundings() : 9, .magnitude = 2});
    }
  }
}

// Few different values, so that windows have several equal maxima, and zeros, which a ReLU lets nothing through.
TEST_P(TestedHalf, BackwardOfMaxPoolingGoesToTheFirstMaximum) {
  const op::Window windows[] = {
      {.kernel = {3, 3}, .stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}},
      {.kernel = {3, 3}, .stride = {2, 2}, .pad_after = {1, 1}},
      {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}},
      {.kernel = {2, 2}, .stride = {2, 2}},
      {.kernel = {5, 4}, .stride = {3, 2}, .pad_before = {1, 2}, .pad_after = {2, 1}},
  };
  for (const op::Window& window : windows) {
    for (const std::int64_t channels : {64, 19}) {
      for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
        const bool relu = activation == op::Activation::relu;
        HostTensor src = rounded({2, channels, 13, 18}, 1, relu ? -1 : -2, 2);
        for (float& x : src.f32()) x = relu ? std::max(std::round(x), 0.0f) : std::round(x);
        KernelRun forward(*make_backend("reference"), OperationCase(op::Pool{.window = window}, {src}),
                          {.name = "reference"});
        forward.run();
        const HostTensor dst = forward.output(0);
        check(OperationCase(op::PoolBackward{.window = window, .src_shape = src.shape(), .activation = activation},
                            {rounded(dst.shape(), 2), src, dst}),
              {.terms = 9 * roundings(), .magnitude = 2});
      }
    }
  }
}

TEST_P(TestedHalf, Copies) {
  const HostTensor a = rounded({2, 19, 4, 5}, 1), b = rounded({2, 32, 4, 5}, 2);
  check(OperationCase(op::Concat{1}, {a, b}), {.terms = 0});
  check(OperationCase(op::Concat{1}, {b, a}), {.terms = 0});
  check(OperationCase(op::Split{1, {16, 3, 13}}, {b}), {.terms = 0});
  check(OperationCase(op::Slice{{0, 3, 0, 0}, {2, 8, 4, 5}}, {b}), {.terms = 0});
  check(OperationCase(op::Pad{{0, 5, 0, 0}, {0, 8, 0, 0}, 0}, {a}), {.terms = 0});
  check(OperationCase(op::Pad{{0, 0, 1, 2}, {0, 0, 1, 0}, 0.5f}, {b}), {.terms = 0});
  check(OperationCase(op::Reshape{{2, 19 * 20}}, {a}), {.terms = 0});
}

TEST_P(TestedHalf, MeansOverTheImageAndBack) {
  for (const op::ReduceKind kind : {op::ReduceKind::mean, op::ReduceKind::max})
    check(OperationCase(op::Reduce{kind, {2, 3}, true}, {rounded({2, 19, 7, 7}, 1)}), {.terms = 49});
  check(OperationCase(op::Broadcast{.shape = {2, 19, 7, 7}, .scale = 1.0f / 49}, {rounded({2, 19, 1, 1}, 1)}), {});
}

// As convolutions on a GPU take images of few channels: with channels filled up, two by two pixels together or not.
TEST_P(TestedHalf, ReordersOfImages) {
  const std::vector<Layout> layouts{
      Layout::plain(4), {{0, 2, 3, 1}, {{1, 8}}}, {{0, 2, 3, 1}, {{1, 4}}}, {{0, 2, 3, 1}, {{2, 2}, {3, 2}, {1, 4}}}};
  for (const std::string& name : backend_names()) {
    if (name == "onednn") continue;  // has no such layouts
    const auto backend = make_backend(name);
    for (const Shape& shape : {Shape{2, 3, 16, 18}, {5, 1, 9, 7}, {3, 4, 33, 40}}) {
      const HostTensor value = rounded(shape, 1);
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          for (const DataType from_type : {DataType::f32, type()}) {
            for (const DataType to_type : {DataType::f32, type()}) {
              const TensorDesc src{from_type, shape, from}, dst{to_type, shape, to};
              std::vector<std::byte> stored(src.bytes());
              std::vector<std::byte> expected(dst.bytes());
              pack(src, value.data(), stored.data());
              pack(dst, value.data(), expected.data());
              EXPECT_EQ(reordered(*backend, src, dst, stored), expected)
                  << name << ": " << to_string(shape) << " from " << src.format().name() << " to "
                  << dst.format().name();
            }
          }
        }
      }
    }
  }
}

// Formats that kernels of this backend have asked for.
TEST_P(TestedHalf, ReordersConvert) {
  const std::vector<Layout> layouts{Layout::plain(4),
                                    Layout::channels_last(4),
                                    blocked(16),
                                    {{0, 1, 2, 3}, {{1, 16}, {0, 16}}},
                                    {{0, 1, 2, 3}, {{1, 8}, {0, 16}, {1, 2}}},
                                    {{1, 0, 2, 3}, {{0, 8}, {1, 16}, {0, 2}}}};
  for (const Shape& shape : {Shape{32, 16, 3, 3}, {5, 19, 2, 3}}) {
    const HostTensor value = random_tensor(shape, 1);
    for (const std::string& name : {tested_backend_name(), std::string("reference")}) {
      const auto backend = make_backend(name);
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          for (const auto& [source, target] : {std::pair(DataType::f32, type()), std::pair(type(), DataType::f32)}) {
            const TensorDesc src{source, shape, from}, dst{target, shape, to};
            std::vector<std::byte> packed(src.bytes());
            pack(src, value.data(), packed.data());
            const std::vector<std::byte> result = reordered(*backend, src, dst, packed);
            HostTensor plain(value.type());
            unpack(src, packed.data(), plain.data());
            std::vector<std::byte> expected(result.size());
            pack(dst, plain.data(), expected.data());
            EXPECT_EQ(result, expected) << name << ": " << to_string(shape) << " from " << src.format().name() << " to "
                                        << dst.format().name();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme::testkit
