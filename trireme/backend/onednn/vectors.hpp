// Loops with vectors of fixed width, if the compiler does not keep tiles in registers. A loop is a template over the
// instruction set, called by a function marked for that set; its callers must check the CPU first.
#pragma once

#include <cstdint>

#include "trireme/base/bfloat16.hpp"
#include "trireme/base/simd.hpp"

#if defined(__x86_64__)
#define TRIREME_AVX512 __attribute__((target("avx512f,fma")))
#define TRIREME_AVX2 __attribute__((target("avx2,fma")))
#else
#define TRIREME_AVX512
#define TRIREME_AVX2
#endif

namespace trireme::onednn {

// kWidth: floats per vector; kStreams: whether it has non-temporal stores.
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
// For the rest after the last full vector.
struct Scalar {
  static constexpr int kWidth = 1;
  static constexpr bool kStreams = false;
};

#if defined(__x86_64__)
inline bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
inline bool has_avx2() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
// Makes streamed values visible before other threads learn of them.
inline void finish_streams() { __builtin_ia32_sfence(); }
#else
inline bool has_avx512() { return false; }
inline bool has_avx2() { return false; }
inline void finish_streams() {}
#endif

// Unaligned.
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

// Loads and stores float vectors; bf16 memory is converted, rounded like BFloat16.
template <typename Isa>
struct BitsOf {
  typedef std::uint32_t words __attribute__((vector_size(Isa::kWidth * sizeof(std::uint32_t))));
  typedef std::uint16_t halves __attribute__((vector_size(Isa::kWidth * sizeof(std::uint16_t))));
};

template <typename Isa>
TRIREME_INLINE void load(const float* values, Vector<Isa>& to) {
  to = vector_at<Isa>(values);
}
template <typename Isa>
TRIREME_INLINE void load(const BFloat16* values, Vector<Isa>& to) {
  if constexpr (Isa::kWidth == 1) {
    to = *values;
  } else {
    using Bits = BitsOf<Isa>;
    // Copied: GCC 12 assumes that a vector converted in place is aligned, whatever its type says.
    typename Bits::halves halves;
    __builtin_memcpy(&halves, values, sizeof(halves));
    to = reinterpret_cast<Vector<Isa>>(__builtin_convertvector(halves, typename Bits::words) << 16);
  }
}

template <typename Isa>
TRIREME_INLINE void store(float* to, const Vector<Isa>& value) {
  vector_at<Isa>(to) = value;
}
template <typename Isa>
TRIREME_INLINE void store(BFloat16* to, const Vector<Isa>& value) {
  if constexpr (Isa::kWidth == 1) {
    *to = BFloat16(value);
  } else {
    using Bits = BitsOf<Isa>;
    const auto word = reinterpret_cast<typename Bits::words>(value);
    const auto rounded = word + 0x7fffU + ((word >> 16) & 1U);
    const auto kept = value == value ? rounded : word | 0x400000U;
    const auto halves = __builtin_convertvector(kept >> 16, typename Bits::halves);
    __builtin_memcpy(static_cast<void*>(to), &halves, sizeof(halves));
  }
}

// Non-temporal store, for results larger than the cache: memory is not read first. to: aligned to the vector.
template <typename Isa>
TRIREME_INLINE void stream(float* to, const Vector<Isa>& value) {
  static_assert(Isa::kStreams);
#if defined(__x86_64__)
  asm volatile("vmovntps %1, %0" : "=m"(vector_at<Isa>(to)) : "v"(value));
#else
  vector_at<Isa>(to) = value;
#endif
}

// Larger results leave the cache before anyone reads them.
inline constexpr std::int64_t kStreamBytes = 32 << 20;
inline bool can_stream(const void* to, std::int64_t bytes) {
  return bytes > kStreamBytes && reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

// Prefetches a line into the L2 cache. Addresses past the end do no harm: they are never read.
TRIREME_INLINE void prefetch(const float* address) { __builtin_prefetch(address, 0, 2); }

}  // namespace trireme::onednn
