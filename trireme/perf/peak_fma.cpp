#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/perf/peak.hpp"

namespace trireme::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Each kernel repeats x = x * factor + addend on accumulators that do not depend on each other. A core starts two
// instructions per cycle, each ready after four or five: ten in flight hide that, and all of these fit the registers.
// Each returns its result and is called through a pointer, so that the compiler cannot leave the work out.
using Kernel = float (*)(std::int64_t iterations, float factor, float addend);

constexpr int kAccumulators512 = 24;
constexpr int kAccumulators256 = 12;
constexpr int kPlainLanes = 32;

__attribute__((target("avx512f"))) float run_avx512(std::int64_t iterations, float factor, float addend) {
  const __m512 f = _mm512_set1_ps(factor), a = _mm512_set1_ps(addend);
  __m512 x[kAccumulators512];
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators512; ++i) x[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 24
    for (int i = 0; i < kAccumulators512; ++i) x[i] = _mm512_fmadd_ps(x[i], f, a);
  }
  __m512 sum = x[0];
#pragma GCC unroll 24
  for (int i = 1; i < kAccumulators512; ++i) sum = _mm512_add_ps(sum, x[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) float run_avx2(std::int64_t iterations, float factor, float addend) {
  const __m256 f = _mm256_set1_ps(factor), a = _mm256_set1_ps(addend);
  __m256 x[kAccumulators256];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators256; ++i) x[i] = _mm256_set1_ps(static_cast<float>(i));
  for (std::int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators256; ++i) x[i] = _mm256_fmadd_ps(x[i], f, a);
  }
  __m256 sum = x[0];
#pragma GCC unroll 12
  for (int i = 1; i < kAccumulators256; ++i) sum = _mm256_add_ps(sum, x[i]);
  return _mm256_cvtss_f32(sum);
}

// Each lane adds two products of bf16 to its sum.
__attribute__((target("avx512f,avx512bf16"))) float run_avx512_bf16(std::int64_t iterations, float factor,
                                                                    float addend) {
  const __m512bh f = _mm512_cvtne2ps_pbh(_mm512_set1_ps(factor), _mm512_set1_ps(factor));
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(addend), _mm512_set1_ps(addend));
  __m512 x[kAccumulators512];
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators512; ++i) x[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 24
    for (int i = 0; i < kAccumulators512; ++i) x[i] = _mm512_dpbf16_ps(x[i], f, a);
  }
  __m512 sum = x[0];
#pragma GCC unroll 24
  for (int i = 1; i < kAccumulators512; ++i) sum = _mm512_add_ps(sum, x[i]);
  return _mm512_cvtss_f32(sum);
}

// What the compiler makes of it for the oldest processors of this architecture: a multiplication and an addition.
float run_plain(std::int64_t iterations, float factor, float addend) {
  std::array<float, kPlainLanes> x{};
  for (std::int64_t n = 0; n < iterations; ++n) {
    for (float& lane : x) lane = lane * factor + addend;
  }
  float sum = 0;
  for (const float lane : x) sum += lane;
  return sum;
}

struct Variant {
  Kernel kernel = nullptr;
  double flops_per_iteration = 0;
  const char* instruction_set = "";
  DataType type = DataType::f32;
};

Variant widest(DataType type) {
  if (type == DataType::bf16 && __builtin_cpu_supports("avx512bf16"))
    return {run_avx512_bf16, 4.0 * 16 * kAccumulators512, "avx512_bf16", DataType::bf16};
  if (__builtin_cpu_supports("avx512f")) return {run_avx512, 2.0 * 16 * kAccumulators512, "avx512"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {run_avx2, 2.0 * 8 * kAccumulators256, "avx2+fma"};
  }
  return {run_plain, 2.0 * kPlainLanes, "sse2"};
}

// Seconds from the first thread's start to the last one's end.
double time_once(const Variant& variant, int threads, std::int64_t iterations) {
  std::vector<Clock::time_point> starts(static_cast<std::size_t>(threads)), ends(static_cast<std::size_t>(threads));
#pragma omp parallel num_threads(threads)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
#pragma omp barrier
    starts[thread] = Clock::now();
    variant.kernel(iterations, 0.5f, 1.0f);
    ends[thread] = Clock::now();
  }
  const auto last = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(last - *std::min_element(starts.begin(), starts.end())).count();
}

}  // namespace

Peak measure_fma_peak(int threads, DataType type, double seconds) {
  if (threads < 1) bad_input("cannot measure the peak of {} threads; at least 1 is needed", threads);
  constexpr int kRuns = 10;
  const Variant variant = widest(type);

  // Iterations that fill one run's share of the time; growing towards it also brings the cores up to speed.
  std::int64_t iterations = 1 << 12;
  double elapsed = time_once(variant, threads, iterations);
  while (elapsed < 0.5 * seconds / kRuns) {
    iterations *= 2;
    elapsed = time_once(variant, threads, iterations);
  }
  for (int run = 0; run < kRuns; ++run) elapsed = std::min(elapsed, time_once(variant, threads, iterations));
  const double flops = variant.flops_per_iteration * static_cast<double>(iterations) * threads;
  return {flops / elapsed, variant.type, variant.instruction_set, threads};
}

}  // namespace trireme::perf
