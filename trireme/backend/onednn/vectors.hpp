// Loops that are written with vectors of a set width, where the compiler's own vectorisation does not keep tiles in
// registers. A loop is a template over the instruction set; a function marked for that set calls it, and who calls that
// function has asked the CPU first.
#pragma once

#include <cstdint>

#include "trireme/base/simd.hpp"

#if defined(__x86_64__)
#define TRIREME_AVX512 __attribute__((target("avx512f,fma")))
#define TRIREME_AVX2 __attribute__((target("avx2,fma")))
#else
#define TRIREME_AVX512
#define TRIREME_AVX2
#endif

namespace trireme::onednn {

// kWidth floats in a vector; kStreams: whether it can be written around the cache.
struct Avx512 {
  static constexpr int kWidth = 16;
  static constexpr bool kStreams = true;
};
struct Avx2 {
  static constexpr int kWidth = 8;
  static constexpr bool kStreams = true;
};
// What every CPU of the build's target has.
struct Baseline {
  static constexpr int kWidth = 4;
  static constexpr bool kStreams = false;
};
// For what is left over behind the last vector.
struct Scalar {
  static constexpr int kWidth = 1;
  static constexpr bool kStreams = false;
};

#if defined(__x86_64__)
inline bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
inline bool has_avx2() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
// Streamed values must be written before other threads are told that they are.
inline void finish_streams() { __builtin_ia32_sfence(); }
#else
inline bool has_avx512() { return false; }
inline bool has_avx2() { return false; }
inline void finish_streams() {}
#endif

// May lie at any address.
template <typename Isa>
struct VectorOf {
  typedef float type __attribute__((vector_size(Isa::kWidth * sizeof(float)), aligned(sizeof(float)), may_alias));
};
template <>
struct VectorOf<Scalar> {
  using type = float;
};
template <typename Isa>
using Vector = typename VectorOf<Isa>::type;

template <typename Isa>
TRIREME_INLINE Vector<Isa>& vector_at(float* values) {
  return *reinterpret_cast<Vector<Isa>*>(values);
}
template <typename Isa>
TRIREME_INLINE const Vector<Isa>& vector_at(const float* values) {
  return *reinterpret_cast<const Vector<Isa>*>(values);
}

// Writes around the cache, for results that are larger than it: the memory is not read first. to: aligned to the
// vector.
template <typename Isa>
TRIREME_INLINE void stream(float* to, const Vector<Isa>& value) {
  static_assert(Isa::kStreams);
#if defined(__x86_64__)
  asm volatile("vmovntps %1, %0" : "=m"(vector_at<Isa>(to)) : "v"(value));
#else
  vector_at<Isa>(to) = value;
#endif
}

// Results of this size are gone from the cache before anyone reads them.
inline constexpr std::int64_t kStreamBytes = 32 << 20;
inline bool can_stream(const void* to, std::int64_t bytes) {
  return bytes > kStreamBytes && reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

// Fetches a line into the second level of the cache. An address beyond the end does no harm: it is never read.
TRIREME_INLINE void prefetch(const float* address) { __builtin_prefetch(address, 0, 2); }

}  // namespace trireme::onednn
