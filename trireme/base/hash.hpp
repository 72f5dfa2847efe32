// A hash to compare bytes and detect damage. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace trireme {

inline std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

inline std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash = 0) {
  hash = mix_hash(hash, bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = bytes.size() < sizeof(word) ? bytes.size() : sizeof(word);
    std::memcpy(&word, bytes.data(), count);
    hash = mix_hash(hash, word);
    bytes = bytes.subspan(count);
  }
  return hash;
}

}  // namespace trireme
