// The generator of trireme/base/random.hpp for the GPU; must give the same bits.
#pragma once

#include <cstdint>

namespace trireme::cuda {

__device__ inline uint4 philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  uint4 c{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
          static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c.x;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c.z;
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c.y ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c.w ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// [0, 1) with 24 bits.
__device__ inline float to_unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

}  // namespace trireme::cuda
