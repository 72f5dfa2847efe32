// Counter-based random numbers (Philox 4x32-10): values depend only on key and position, so initial values, dropout
// masks and synthetic data are the same for any number of threads and processes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace trireme {

using RandomBlock = std::array<std::uint32_t, 4>;

// Inline: dropout draws one block for every four elements.
inline RandomBlock philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  RandomBlock c{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
                static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

inline float to_unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }  // [0, 1) with 24 bits

// 64 of the bits, for example as a key.
inline std::uint64_t to_key(const RandomBlock& block) { return (std::uint64_t{block[0]} << 32) | block[1]; }

// A key for a named thing (a variable, a dropout node) under a seed.
std::uint64_t random_key(std::uint64_t seed, std::string_view name);

// Normal values, redrawn beyond two standard deviations; parallel. `first` is the position of values[0] in the
// sequence, so that a part equals the same part of the whole.
void fill_truncated_normal(std::span<float> values, float mean, float stddev, std::uint64_t key,
                           std::uint64_t first = 0);
void fill_uniform(std::span<float> values, float low, float high, std::uint64_t key);
// Integers in [0, limit).
void fill_uniform(std::span<std::int32_t> values, std::int32_t limit, std::uint64_t key, std::uint64_t first = 0);

}  // namespace trireme
