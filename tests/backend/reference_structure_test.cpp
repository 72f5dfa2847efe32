#include <gtest/gtest.h>

#include "tests/backend/bound_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme {
namespace {

using op::ReduceKind;
using testkit::BoundKernel;
using testkit::f32;
using testkit::run_kernel;

HostTensor six() { return f32({2, 3}, {1, 2, 3, 4, 5, 6}); }

TEST(ReferenceStructure, Concat) {
  EXPECT_EQ(run_kernel(op::Concat{.axis = 1}, {six(), f32({2, 1}, {10, 20})}),
            (std::vector<float>{1, 2, 3, 10, 4, 5, 6, 20}));
  EXPECT_EQ(run_kernel(op::Concat{.axis = 0}, {f32({1, 3}, {7, 8, 9}), six()}),
            (std::vector<float>{7, 8, 9, 1, 2, 3, 4, 5, 6}));
}

TEST(ReferenceStructure, Split) {
  BoundKernel kernel(op::Split{.axis = 1, .sizes = {1, 2}}, {six()});
  kernel.run();
  EXPECT_EQ(kernel.output(0), (std::vector<float>{1, 4}));
  EXPECT_EQ(kernel.output(1), (std::vector<float>{2, 3, 5, 6}));
}

TEST(ReferenceStructure, Pad) {
  const op::Pad operation{.before = {1, 0}, .after = {0, 2}, .value = -1};
  EXPECT_EQ(run_kernel(operation, {f32({1, 2}, {5, 6})}), (std::vector<float>{-1, -1, -1, -1, 5, 6, -1, -1}));
}

TEST(ReferenceStructure, Slice) {
  EXPECT_EQ(run_kernel(op::Slice{.begin = {0, 1}, .size = {2, 2}}, {six()}), (std::vector<float>{2, 3, 5, 6}));
}

TEST(ReferenceStructure, Reshape) {
  BoundKernel kernel(op::Reshape{.shape = {3, 2}}, {six()});
  kernel.run();
  EXPECT_EQ(kernel.output_tensor().shape(), (Shape{3, 2}));
  EXPECT_EQ(kernel.output(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(ReferenceReduce, EveryKindOverAxes) {
  const HostTensor src = f32({2, 1, 3}, {1, 2, 3, 4, 5, 9});
  EXPECT_EQ(run_kernel(op::Reduce{.kind = ReduceKind::sum, .axes = {}}, {src}), (std::vector<float>{24}));
  EXPECT_EQ(run_kernel(op::Reduce{.kind = ReduceKind::sum, .axes = {0}}, {src}), (std::vector<float>{5, 7, 12}));
  EXPECT_EQ(run_kernel(op::Reduce{.kind = ReduceKind::mean, .axes = {1, 2}}, {src}), (std::vector<float>{2, 6}));
  EXPECT_EQ(run_kernel(op::Reduce{.kind = ReduceKind::max, .axes = {0, 2}}, {src}), (std::vector<float>{9}));
  EXPECT_EQ(run_kernel(op::Reduce{.kind = ReduceKind::max, .axes = {1}}, {f32({2, 2}, {-3, -1, -5, -7})}),
            (std::vector<float>{-1, -5}));
}

TEST(ReferenceReduce, AccumulatesInFloat64) {
  // In float32 1e8 + 1 is 1e8, and the sum would lose the ones.
  EXPECT_EQ(run_kernel(op::Reduce{}, {f32({4}, {1e8f, 1, 1, -1e8f})}), (std::vector<float>{2}));
}

TEST(ReferenceReduce, L2Loss) {
  EXPECT_EQ(run_kernel(op::L2Loss{.scale = 0.5f}, {f32({2}, {3, -4})}), (std::vector<float>{6.25}));
}

// Runs a reorder of four-byte words between two layouts.
std::vector<std::int32_t> reorder(const TensorDesc& from, const Layout& to, std::vector<std::int32_t> words) {
  const KernelChoice choice = make_backend("reference")->choose_reorder(from, {to, from.dtype});
  std::vector<std::int32_t> result(to.elements(from.shape), -1);
  KernelMemory memory;
  memory.inputs = {words.data()};
  memory.outputs = {result.data()};
  choice.kernel->bind(memory);
  choice.kernel->run({});
  return result;
}

const Layout kBlocked{.order = {0, 1, 2, 3}, .blocks = {{.axis = 1, .size = 2}}};

TEST(ReferenceReorder, ToChannelsLast) {
  const TensorDesc from{DataType::i32, {1, 2, 1, 3}, Layout::plain(4)};
  EXPECT_EQ(reorder(from, Layout::channels_last(4), {1, 2, 3, 10, 20, 30}),
            (std::vector<std::int32_t>{1, 10, 2, 20, 3, 30}));
}

TEST(ReferenceReorder, ToBlockedZeroesThePadding) {
  const TensorDesc from{DataType::i32, {1, 3, 1, 2}, Layout::plain(4)};
  EXPECT_EQ(reorder(from, kBlocked, {1, 2, 10, 20, 100, 200}),
            (std::vector<std::int32_t>{1, 10, 2, 20, 100, 0, 200, 0}));
}

TEST(ReferenceReorder, BetweenTwoLayoutsNeitherOfWhichIsPlain) {
  const TensorDesc from{DataType::i32, {1, 3, 1, 2}, kBlocked};
  EXPECT_EQ(reorder(from, Layout::channels_last(4), {1, 10, 2, 20, 100, 0, 200, 0}),
            (std::vector<std::int32_t>{1, 10, 100, 2, 20, 200}));
}

TEST(ReferenceBackend, HasNoKernelForValues) {
  EXPECT_THROW(BoundKernel(op::Placeholder{.type = {DataType::f32, {2}}}, {}), Error);
}

}  // namespace
}  // namespace trireme
