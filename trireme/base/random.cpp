#include "trireme/base/random.hpp"

#include <algorithm>
#include <cmath>

namespace trireme {

std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a: std::hash may differ between standard libraries
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3ull;
  return to_key(philox(seed, hash, 0));
}

namespace {

// Each position has its own stream, so redraws do not shift its neighbors.
float truncated_normal_at(std::uint64_t key, std::uint64_t position) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const RandomBlock bits = philox(key, attempt, position);
    const float u = 1.0f - to_unit(bits[0]);  // (0, 1], so that the logarithm is finite
    const float radius = std::sqrt(-2.0f * std::log(u));
    const float angle = 6.2831853f * to_unit(bits[1]);
    const float first = radius * std::cos(angle);
    if (std::fabs(first) <= 2.0f) return first;
    const float second = radius * std::sin(angle);
    if (std::fabs(second) <= 2.0f) return second;
  }
}

}  // namespace

void fill_truncated_normal(std::span<float> values, float mean, float stddev, std::uint64_t key, std::uint64_t first) {
  const auto n = std::ssize(values);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    values[i] = mean + stddev * truncated_normal_at(key, first + static_cast<std::uint64_t>(i));
  }
}

void fill_uniform(std::span<float> values, float low, float high, std::uint64_t key) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * to_unit(philox(key, 0, i / 4)[i % 4]);
}

void fill_uniform(std::span<std::int32_t> values, std::int32_t limit, std::uint64_t key, std::uint64_t first) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t position = first + i;
    const std::uint64_t bits = philox(key, 0, position / 4)[position % 4];
    values[i] = static_cast<std::int32_t>((bits * static_cast<std::uint64_t>(limit)) >> 32);
  }
}

}  // namespace trireme
