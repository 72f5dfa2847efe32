// Arithmetic of reductions: vectorized loops on the calling thread, and conversion to 16-bit wire formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

// into[i] = a[i] + b[i], or the larger of the two. `into` may be `a`.
void combine(float* into, const float* a, const float* b, std::size_t count, Reduction reduction);
void scale(std::span<float> values, float factor);

// The last step, once all contributions are in: divides if the reduction is a mean.
void finish_reduction(std::span<float> values, Reduction reduction, int contributions);

// To 16 bits, rounding to nearest even, and back. Not for Wire::fp32, which is sent unchanged.
void encode(std::span<const float> values, std::uint16_t* wire, Wire form);
void decode(const std::uint16_t* wire, std::span<float> values, Wire form);

}  // namespace trireme::comm
