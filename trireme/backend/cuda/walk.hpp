// Where a box's elements are in several tensors, as plain numbers for kernels (strided.cuh). Made by Box (strided.hpp).
#pragma once

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// Elements in one 16-byte access.
inline int full_pack(DataType type) { return static_cast<int>(16 / size_of(type)); }

// Converts to 32 bits; Error(bad_input) from 2^31 on.
std::uint32_t checked_positions(std::int64_t positions);

// Division by a fixed number as a product and a shift; correct for dividends below 2^31.
struct FastDivide {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  FastDivide() = default;
  explicit FastDivide(std::int64_t divisor_);
};

inline constexpr int kMaxAxes = 8;

template <int kTensors>
struct Walk {
  std::uint32_t positions = 1;
  int axes = 0;
  FastDivide extents[kMaxAxes];  // innermost axis first
  std::int64_t strides[kTensors][kMaxAxes] = {};
};

}  // namespace trireme::cuda
