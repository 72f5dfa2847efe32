#include "trireme/perf/peak.hpp"

#include <cpuid.h>
#include <immintrin.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

// Each kernel repeats x = x * factor + addend on independent accumulators. A core issues two instructions per cycle
// with a latency of four or five: ten in flight hide that, and all fit the registers. Kernels return their result and
// are called through a pointer, so that the compiler cannot drop the work.
using Kernel = float (*)(std::int64_t iterations, float factor, float addend);

constexpr int kAccumulators512 = 24;
constexpr int kAccumulators256 = 12;
constexpr int kPlainLanes = 32;
constexpr int kAccumulatorsAmx = 6;
constexpr double kFlopsAmx = 2.0 * 16 * 16 * 32;  // per product: 16 x 32 times 32 x 16

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

// Each lane adds two bf16 products to its sum.
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

// The CPU has AMX and the kernel lets this process use it: programs must request the tiles, 8 KiB of state
// (Documentation/arch/x86/xstate.rst).
bool may_use_amx_bf16() {
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;      // CPUID 7.0, EDX
  constexpr long kRequestPermission = 0x1023, kTileDataState = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileDataState) == 0;
}

// Each of six tiles accumulates products of two bf16 tiles. A core starts one every 16 cycles with a latency of 52:
// four in flight hide that. The accumulators stay finite: they grow by 32 * factor * factor per iteration.
__attribute__((target("amx-tile,amx-bf16"))) float run_amx_bf16(std::int64_t iterations, float factor,
                                                                float /*addend*/) {
  struct alignas(64) Config {  // as LDTILECFG reads it
    std::uint8_t palette = 1, start_row = 0;
    std::array<std::uint8_t, 14> reserved{};
    std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
    std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Config) == 64);
  constexpr int kRowBytes = 64;
  alignas(64) std::array<std::uint16_t, 16 * 32> factors;
  factors.fill(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(factor) >> 16));  // exact for 0.5
  const Config config;
  // Some compilers do not know that the tile instructions below read all of this memory.
  asm volatile("" : : "r"(&config), "r"(factors.data()) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, factors.data(), kRowBytes);
  _tile_loadd(7, factors.data(), kRowBytes);
  for (std::int64_t n = 0; n < iterations; ++n) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  alignas(64) std::array<float, 16 * 16> sums;
  _tile_stored(0, sums.data(), kRowBytes);
  _tile_release();
  return sums[0];
}

// Compiled for the oldest processors of this architecture: a multiplication and an addition.
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
  if (type == DataType::bf16 && may_use_amx_bf16())
    return {run_amx_bf16, kAccumulatorsAmx * kFlopsAmx, "amx_bf16", DataType::bf16};
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
  std::vector<SteadyClock::time_point> starts(threads), ends(threads);
#pragma omp parallel num_threads(threads)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
#pragma omp barrier
    starts[thread] = SteadyClock::now();
    variant.kernel(iterations, 0.5f, 1.0f);
    ends[thread] = SteadyClock::now();
  }
  const auto last = *std::ranges::max_element(ends);
  return std::chrono::duration<double>(last - *std::ranges::min_element(starts)).count();
}

// Four times the last-level caches of all packages, so that little of a pass is left for the next; bounded below for
// machines that hide their caches, and above by free memory.
std::int64_t array_bytes(const Machine& machine) {
  std::int64_t last_level = 0;
  if (!machine.caches.empty()) last_level = machine.caches.back().bytes * machine.caches.back().count;
  const std::int64_t wanted = std::max<std::int64_t>(4 * last_level, 128 << 20);
  const std::int64_t most = std::max<std::int64_t>(machine.available_bytes / 8, 4 << 20);
  return std::min(wanted, most) / 4096 * 4096;
}

// The calling thread's part of an array: whole pages.
struct Part {
  std::int64_t offset = 0, bytes = 0;
};
Part part_of_thread(std::int64_t total) {
  const std::int64_t pages = total / 4096, thread = omp_get_thread_num(), threads = omp_get_num_threads();
  const std::int64_t begin = pages * thread / threads, end = pages * (thread + 1) / threads;
  return {begin * 4096, (end - begin) * 4096};
}

// Four sums, so that additions do not wait for each other.
std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sums[4] = {};
  for (std::int64_t i = 0; i + 4 <= count; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// As many passes as fit in the time, at least five, after an uncounted one.
template <typename Pass>
PassRates rates_of(double bytes, double seconds, Pass pass) {
  constexpr std::size_t kFewest = 5;
  std::vector<double> rates;
  pass();
  for (double total = 0; rates.size() < kFewest || total < seconds;) {
    const auto start = SteadyClock::now();
    pass();
    const double elapsed = seconds_since(start);
    rates.push_back(bytes / elapsed);
    total += elapsed;
  }
  const auto [worst, best] = std::ranges::minmax_element(rates);
  return {.best = *best, .median = median(rates), .worst = *worst, .passes = static_cast<int>(rates.size())};
}

}  // namespace

Peak measure_fma_peak(int threads, DataType type, double seconds) {
  if (threads < 1) bad_input("cannot measure the peak of {} threads; at least 1 is needed", threads);
  constexpr int kRuns = 10;
  const Variant variant = widest(type);

  // Finds the iterations for one run's share of the time; this also brings the cores up to speed.
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

Bandwidth measure_memory_bandwidth(int threads, double seconds) {
  if (threads < 1) bad_input("cannot measure the memory bandwidth of {} threads; at least 1 is needed", threads);
  const std::int64_t bytes = array_bytes(read_machine(0));
  const AlignedMemory source(bytes), target(bytes);

  // First touch by the owning thread places the pages near its core.
#pragma omp parallel num_threads(threads)
  {
    const Part part = part_of_thread(bytes);
    std::memset(source.at(part.offset), 1, part.bytes);
    std::memset(target.at(part.offset), 2, part.bytes);
  }

  const auto size = static_cast<double>(bytes);
  const PassRates copy = rates_of(2 * size, seconds / 2, [&] {
#pragma omp parallel num_threads(threads)
    {
      const Part part = part_of_thread(bytes);
      std::memcpy(target.at(part.offset), source.at(part.offset), part.bytes);
    }
  });

  volatile std::uint64_t sink = 0;  // keeps the compiler from dropping the reads
  const PassRates read = rates_of(size, seconds / 2, [&] {
    std::uint64_t sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
      const Part part = part_of_thread(bytes);
      sum += sum_of(static_cast<const std::uint64_t*>(source.at(part.offset)), part.bytes / 8);
    }
    sink = sum;
  });

  return {.copy = copy, .read = read, .threads = threads};
}

}  // namespace trireme::perf
