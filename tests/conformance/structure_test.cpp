// Operations that move elements, reorders among them, each backend against the reference.
#include <gtest/gtest.h>

#include <cstring>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

// Nothing is computed: results are equal.
const Tolerance kExact{.terms = 0};

struct JoinCase {
  int axis;
  std::vector<Shape> parts;
};

const JoinCase kJoins[] = {
    {1, {{2, 16, 3, 5}, {2, 32, 3, 5}, {2, 48, 3, 5}}},               // whole blocks
    {1, {{2, 16, 3, 5}, {2, 32, 3, 5}, {2, 5, 3, 5}}},                // the last one in part of a block
    {1, {{3, 12, 4, 3}, {3, 7, 4, 3}, {3, 24, 4, 3}, {3, 1, 4, 3}}},  // across blocks
    {1, {{1, 5, 2, 2}}},                                              //
    {0, {{2, 19, 3, 2}, {1, 19, 3, 2}}},                              //
    {2, {{2, 20, 3, 2}, {2, 20, 5, 2}}},                              //
    {3, {{2, 20, 3, 2}, {2, 20, 3, 1}, {2, 20, 3, 4}}},               //
    {1, {{4, 3}, {4, 9}}},                                            //
    {0, {{3}, {5}}},
};

TEST(TestedConcat, AgreesWithTheReference) {
  for (const JoinCase& c : kJoins) {
    std::vector<HostTensor> values;
    for (const Shape& part : c.parts) values.push_back(random_tensor(part, values.size() + 1));
    expect_same(OperationCase(op::Concat{c.axis}, std::move(values)), kExact);
  }
}

TEST(TestedSplit, AgreesWithTheReference) {
  for (const JoinCase& c : kJoins) {
    op::Split split{.axis = c.axis, .sizes = {}};
    Shape whole = c.parts[0];
    whole[c.axis] = 0;
    for (const Shape& part : c.parts) {
      split.sizes.push_back(part[c.axis]);
      whole[c.axis] += part[c.axis];
    }
    expect_same(OperationCase(split, {random_tensor(whole, 1)}), kExact);
  }
}

TEST(TestedPad, AgreesWithTheReference) {
  for (const float value : {0.0f, 1.5f}) {
    const HostTensor image = random_tensor({2, 19, 4, 5}, 1);
    const HostTensor even = random_tensor({2, 32, 4, 5}, 2);
    for (const HostTensor& src : {image, even}) {
      expect_same(OperationCase(op::Pad{{0, 0, 1, 2}, {0, 0, 3, 0}, value}, {src}), kExact);
      expect_same(OperationCase(op::Pad{{0, 0, 0, 0}, {0, 13, 0, 0}, value}, {src}), kExact);
      expect_same(OperationCase(op::Pad{{0, 8, 0, 0}, {0, 8, 0, 0}, value}, {src}), kExact);
      expect_same(OperationCase(op::Pad{{0, 5, 0, 0}, {0, 8, 0, 0}, value}, {src}), kExact);
      expect_same(OperationCase(op::Pad{{1, 16, 0, 0}, {0, 3, 0, 1}, value}, {src}), kExact);
    }
    expect_same(OperationCase(op::Pad{{2}, {1}, value}, {random_tensor({3}, 3)}), kExact);
  }
}

TEST(TestedSlice, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{3, 19, 4, 5}, {3, 48, 4, 5}}) {
    const HostTensor src = random_tensor(shape, 1);
    expect_same(OperationCase(op::Slice{{0, 0, 1, 2}, {3, shape[1], 2, 3}}, {src}), kExact);
    expect_same(OperationCase(op::Slice{{1, 16, 0, 0}, {2, shape[1] - 16, 4, 5}}, {src}), kExact);
    expect_same(OperationCase(op::Slice{{0, 3, 0, 0}, {3, 8, 4, 5}}, {src}), kExact);
    expect_same(OperationCase(op::Slice{{0, 0, 0, 0}, {3, 9, 4, 5}}, {src}), kExact);
  }
  expect_same(OperationCase(op::Slice{{1, 0}, {1, 2}}, {random_tensor({3, 4}, 2)}), kExact);
}

TEST(TestedReshape, AgreesWithTheReference) {
  expect_same(OperationCase(op::Reshape{{2, 19 * 12}}, {random_tensor({2, 19, 3, 4}, 1)}), kExact);
  expect_same(OperationCase(op::Reshape{{2, 32, 3, 4}}, {random_tensor({2, 32, 3, 4}, 2)}), kExact);
  expect_same(OperationCase(op::Reshape{{6, 1, 4}}, {random_tensor({2, 12}, 3)}), kExact);
  expect_same(OperationCase(op::Reshape{{}}, {random_tensor({1, 1}, 4)}), kExact);
}

TEST(TestedReorder, EveryPairOfLayoutsKeepsEveryElement) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  const auto weights = [](std::vector<int> order, std::vector<Layout::Block> blocks) {
    return Layout{std::move(order), std::move(blocks)};
  };
  const std::vector<Layout> layouts{Layout::plain(4),
                                    Layout::channels_last(4),
                                    blocked(16),
                                    blocked(8),
                                    weights({0, 1, 2, 3}, {{1, 16}, {0, 16}}),
                                    weights({0, 1, 2, 3}, {{0, 16}, {1, 16}}),
                                    weights({1, 0, 2, 3}, {{0, 16}, {1, 16}}),
                                    weights({0, 2, 3, 1}, {{0, 16}}),
                                    weights({0, 1, 2, 3}, {{1, 8}, {0, 8}})};
  for (const Shape& shape : {Shape{32, 16, 3, 3}, {5, 19, 2, 3}, {1, 1, 4, 4}, {17, 3, 1, 1}}) {
    const HostTensor value = random_tensor(shape, 1);
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        const TensorDesc src{DataType::f32, shape, from}, dst{DataType::f32, shape, to};
        std::vector<std::byte> packed(src.bytes()), expected(dst.bytes());
        pack(src, value.data(), packed.data());
        pack(dst, value.data(), expected.data());
        const std::vector<std::byte> result = reordered(*backend, src, dst, packed);
        EXPECT_EQ(result, expected) << to_string(shape) << " from " << from.name() << " to " << to.name();
      }
    }
  }
}

}  // namespace
}  // namespace trireme::testkit
