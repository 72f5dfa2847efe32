#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/reduction_kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"

namespace trireme::cuda {
namespace {

template <Accumulation kAccumulation>
__device__ float first_total() {
  return kAccumulation == Accumulation::maximum ? -INFINITY : 0.0f;
}

template <Accumulation kAccumulation>
__device__ float with_total(float total, float other) {
  return kAccumulation == Accumulation::maximum ? fmaxf(total, other) : total + other;
}

template <Accumulation kAccumulation>
__device__ float with_term(float total, float term) {
  return with_total<kAccumulation>(total, kAccumulation == Accumulation::sum_of_squares ? term * term : term);
}

template <Accumulation kAccumulation, typename Src, int kWidth>
__device__ void add_terms(Values<kWidth>& totals, const Pack<Src, kWidth>& terms) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) totals.at[i] = with_term<kAccumulation>(totals.at[i], to_float(terms.values[i]));
}

// Accumulates the packs at address(begin), address(begin + step), ...; loads several before it uses the first.
template <Accumulation kAccumulation, typename Src, int kWidth, typename Address>
__device__ Values<kWidth> accumulated(std::int64_t begin, std::int64_t end, std::int64_t step, Address address) {
  constexpr int kBatch = 4;
  Values<kWidth> totals;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) totals.at[i] = first_total<kAccumulation>();
  std::int64_t at = begin;
  for (; at + (kBatch - 1) * step < end; at += kBatch * step) {
    Pack<Src, kWidth> batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) batch[i] = load_pack<Src, kWidth>(address(at + i * step));
#pragma unroll
    for (int i = 0; i < kBatch; ++i) add_terms<kAccumulation>(totals, batch[i]);
  }
  for (; at < end; at += step) add_terms<kAccumulation>(totals, load_pack<Src, kWidth>(address(at)));
  return totals;
}

__device__ void store_any(void* data, DataType type, std::int64_t at, float value) {
  if (type == DataType::bf16) {
    static_cast<Bf16*>(data)[at] = from_float<Bf16>(value);
  } else if (type == DataType::f16) {
    static_cast<Fp16*>(data)[at] = from_float<Fp16>(value);
  } else {
    static_cast<float*>(data)[at] = value;
  }
}

// The terms of a slice.
struct Part {
  std::int64_t begin, end;

  __device__ Part(std::int64_t terms, std::int64_t slices, std::int64_t slice) {
    const std::int64_t size = (terms + slices - 1) / slices;
    begin = slice * size;
    end = min(terms, begin + size);
  }
};

// A block has rows of `lanes` threads along the columns, one row per group of rows.
template <typename Src, int kWidth, Accumulation kAccumulation>
__global__ void __launch_bounds__(kReductionThreads)
    column_kernel(ColumnReduction reduction, std::int64_t chunks, ReductionTypes types, const Src* src, void* dst) {
  __shared__ float shared[kWidth][kReductionThreads];
  const int groups = kReductionThreads / reduction.lanes;
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / reduction.lanes, lane = thread % reduction.lanes;
  const std::int64_t chunk = blockIdx.x % chunks, rest = blockIdx.x / chunks;
  const std::int64_t outer = rest % reduction.outer, slice = rest / reduction.outer;
  const std::int64_t column = (chunk * reduction.lanes + lane) * kWidth;
  const Part part(reduction.rows, reduction.slices, slice);

  const Src* const from = src + outer * reduction.outer_stride + column;
  const std::int64_t end = column < reduction.columns ? part.end : part.begin;
  const Values<kWidth> totals = accumulated<kAccumulation, Src, kWidth>(
      part.begin + group, end, groups, [&](std::int64_t row) { return from + row * reduction.row_stride; });
#pragma unroll
  for (int i = 0; i < kWidth; ++i) shared[i][thread] = totals.at[i];
  for (int half = groups / 2; half > 0; half /= 2) {
    __syncthreads();
    if (group < half) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        shared[i][thread] = with_total<kAccumulation>(shared[i][thread], shared[i][thread + half * reduction.lanes]);
    }
  }
  if (group != 0 || column >= reduction.columns) return;
  const std::int64_t to = (slice * reduction.outer + outer) * reduction.columns + column;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) store_any(dst, types.dst, to + i, shared[i][thread] * types.scale);
}

// One warp per result and slice.
template <typename Src, int kWidth, Accumulation kAccumulation>
__global__ void __launch_bounds__(kReductionThreads)
    term_kernel(const __grid_constant__ TermReduction reduction, ReductionTypes types, const Src* src, void* dst) {
  constexpr int kWarp = 32;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kReductionThreads + threadIdx.x;
  const std::int64_t warp = thread / kWarp;
  const std::int64_t slice = warp / reduction.results.positions;
  if (slice >= reduction.slices) return;
  const auto result = static_cast<std::uint32_t>(warp % reduction.results.positions);
  const Part part(reduction.terms.positions, reduction.slices, slice);

  const Src* const from = src + offsets_at(reduction.results, result).of[0];
  const Values<kWidth> totals = accumulated<kAccumulation, Src, kWidth>(
      part.begin + thread % kWarp, part.end, kWarp,
      [&](std::int64_t term) { return from + offsets_at(reduction.terms, static_cast<std::uint32_t>(term)).of[0]; });
  float total = totals.at[0];
#pragma unroll
  for (int i = 1; i < kWidth; ++i) total = with_total<kAccumulation>(total, totals.at[i]);
  total = kAccumulation == Accumulation::maximum ? warp_max(total) : warp_sum(total);
  if (thread % kWarp == 0) store_any(dst, types.dst, warp, total * types.scale);
}

// function(Src{}, width, accumulation), both as compile-time constants.
template <typename Function>
void with_types(const ReductionTypes& types, int width, Function function) {
  with_packs(types.src, width, [&](auto element, auto pack) {
    using enum Accumulation;
    switch (types.accumulation) {
      case sum:
        return function(element, pack, std::integral_constant<Accumulation, sum>{});
      case sum_of_squares:
        return function(element, pack, std::integral_constant<Accumulation, sum_of_squares>{});
      case maximum:
        return function(element, pack, std::integral_constant<Accumulation, maximum>{});
    }
  });
}

}  // namespace

void launch_column_reduction(cudaStream_t stream, const ColumnReduction& reduction, const ReductionTypes& types,
                             const void* src, void* dst) {
  const std::int64_t chunk = static_cast<std::int64_t>(reduction.lanes) * reduction.width;
  const std::int64_t chunks = (reduction.columns + chunk - 1) / chunk;
  const std::uint32_t blocks = checked_positions(chunks * reduction.outer * reduction.slices);
  with_types(types, reduction.width, [&]<typename Src, typename Width, typename Kind>(Src, Width, Kind) {
    column_kernel<Src, Width::value, Kind::value>
        <<<blocks, kReductionThreads, 0, stream>>>(reduction, chunks, types, static_cast<const Src*>(src), dst);
  });
  check(cudaGetLastError(), "a reduction of columns");
}

void launch_term_reduction(cudaStream_t stream, const TermReduction& reduction, const ReductionTypes& types,
                           const void* src, void* dst) {
  constexpr int kWarpsPerBlock = kReductionThreads / 32;
  const std::int64_t warps = reduction.results.positions * reduction.slices;
  const std::uint32_t blocks = checked_positions((warps + kWarpsPerBlock - 1) / kWarpsPerBlock);
  with_types(types, reduction.width, [&]<typename Src, typename Width, typename Kind>(Src, Width, Kind) {
    term_kernel<Src, Width::value, Kind::value>
        <<<blocks, kReductionThreads, 0, stream>>>(reduction, types, static_cast<const Src*>(src), dst);
  });
  check(cudaGetLastError(), "a reduction");
}

}  // namespace trireme::cuda
