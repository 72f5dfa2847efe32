// Where the elements of a box lie in several tensors at once, as the GPU sees it: no more than numbers. Made by Box
// (strided.hpp) when a kernel is chosen, an argument of kernels (strided.cuh).
#pragma once

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// Elements that fill one access of 16 bytes.
inline int full_pack(DataType type) { return static_cast<int>(16 / size_of(type)); }

// The same as 32 bits; Error(bad_input) where positions on the GPU would overflow them.
std::uint32_t checked_positions(std::int64_t positions);

// Division by a number that is known beforehand, as a product and a shift; right for dividends below 2^31.
struct FastDivide {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  FastDivide() = default;
  explicit FastDivide(std::int64_t divisor_);
};

inline constexpr int kMaxAxes = 8;

// The positions of a box in order, and where each lies in kTensors tensors.
template <int kTensors>
struct Walk {
  std::uint32_t positions = 1;
  int axes = 0;
  FastDivide extents[kMaxAxes];  // innermost axis first
  std::int64_t strides[kTensors][kMaxAxes] = {};
};

}  // namespace trireme::cuda
