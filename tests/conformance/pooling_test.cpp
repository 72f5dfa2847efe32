// Pooling, forward and backward, each backend against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

struct PoolCase {
  const char* name;
  Shape src;
  op::Window window;

  Shape dst() const {
    return {src[0], src[1], op::window_output(window, 0, src[2]), op::window_output(window, 1, src[3])};
  }
  double cells() const { return static_cast<double>(window.kernel[0] * window.kernel[1]); }
};

void PrintTo(const PoolCase& c, std::ostream* stream) { *stream << c.name; }

constexpr op::PoolKind kKinds[] = {op::PoolKind::max, op::PoolKind::average_inside,
                                   op::PoolKind::average_include_padding};

// Few different values, so that windows have several equal maxima and the rule for them shows.
HostTensor coarse(const Shape& shape, std::uint64_t seed) {
  HostTensor value = random_tensor(shape, seed, -2, 2);
  for (float& x : value.f32()) x = std::round(x);
  return value;
}

HostTensor pooled(const op::Pool& pool, const HostTensor& src) {
  const auto reference = make_backend("reference");
  KernelRun run(*reference, OperationCase(pool, {src}), {.name = "reference"});
  run.run();
  return run.output(0);
}

class TestedPooling : public ::testing::TestWithParam<PoolCase> {};

TEST_P(TestedPooling, ForwardAgreesWithTheReference) {
  const PoolCase& c = GetParam();
  for (const op::PoolKind kind : kKinds) {
    expect_same(OperationCase(op::Pool{.kind = kind, .window = c.window}, {random_tensor(c.src, 1)}),
                {.terms = c.cells()});
  }
}

TEST_P(TestedPooling, BackwardAgreesWithTheReference) {
  const PoolCase& c = GetParam();
  for (const op::PoolKind kind : kKinds) {
    std::vector<HostTensor> values{random_tensor(c.dst(), 2)};
    if (kind == op::PoolKind::max) {
      values.push_back(coarse(c.src, 3));
      values.push_back(pooled({.kind = kind, .window = c.window}, values[1]));
    }
    expect_same(
        OperationCase(op::PoolBackward{.kind = kind, .window = c.window, .src_shape = c.src}, std::move(values)),
        {.terms = c.cells()});
  }
}

TEST_P(TestedPooling, BackwardThroughReluAgreesWithTheReference) {
  const PoolCase& c = GetParam();
  HostTensor src = coarse(c.src, 4);
  for (float& x : src.f32()) x = std::max(x, 0.0f);
  std::vector<HostTensor> values{random_tensor(c.dst(), 5), src, pooled({.window = c.window}, src)};
  expect_same(
      OperationCase(op::PoolBackward{.window = c.window, .src_shape = c.src, .activation = op::Activation::relu},
                    std::move(values)),
      {.terms = c.cells()});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TestedPooling,
    ::testing::Values(
        PoolCase{"3x3/2, one cell after", {2, 32, 12, 14}, {.kernel = {3, 3}, .stride = {2, 2}, .pad_after = {1, 1}}},
        PoolCase{"2x2/2", {3, 16, 8, 8}, {.kernel = {2, 2}, .stride = {2, 2}}},
        PoolCase{"3x3/1 same", {2, 24, 7, 9}, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}}},
        PoolCase{"odd channels, batch 1",
                 {1, 19, 9, 5},
                 {.kernel = {3, 2}, .stride = {2, 1}, .pad_before = {1, 0}, .pad_after = {0, 1}}},
        PoolCase{"many channels", {1, 200, 5, 5}, {.kernel = {5, 5}}},
        PoolCase{"5x5/3", {2, 8, 17, 17}, {.kernel = {5, 5}, .stride = {3, 3}}},
        PoolCase{"one channel",
                 {2, 1, 6, 7},
                 {.kernel = {2, 3}, .stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}}},
        PoolCase{"one position, several outputs",
                 {2, 5, 1, 1},
                 {.kernel = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}}},
        PoolCase{"windows with gaps between", {2, 16, 11, 13}, {.kernel = {2, 1}, .stride = {3, 2}}},
        PoolCase{"disjoint windows that leave a rest", {1, 40, 7, 9}, {.kernel = {2, 2}, .stride = {2, 2}}},
        PoolCase{"whole image", {2, 20, 3, 3}, {.kernel = {3, 3}}}),
    [](const auto& tested) { return "Case" + std::to_string(tested.index); });

// Large enough to be written around the cache.
TEST(TestedPoolingOfALargeImage, BackwardAgreesWithTheReference) {
  const op::Window window{.kernel = {2, 2}, .stride = {2, 2}};
  const Shape src{1, 32, 515, 514};
  const HostTensor values = coarse(src, 6);
  const HostTensor dst = pooled({.window = window}, values);
  expect_same(
      OperationCase(op::PoolBackward{.window = window, .src_shape = src}, {random_tensor(dst.shape(), 7), values, dst}),
      {{.name = "blocked", .activations = blocked(16)}}, {.terms = 4});
}

}  // namespace
}  // namespace trireme::testkit
