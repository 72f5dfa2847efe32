// Reductions. A kernel gives one value per result and slice of the terms; several slices are rows of results that a
// second launch reduces. The order of all sums is fixed.
#include <algorithm>
#include <bit>
#include <variant>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

constexpr int kReductionThreads = 256;

enum class Accumulation : std::uint8_t { sum, sum_of_squares, maximum };

// dst[slice][result] = scale · the accumulated value.
struct ReductionTypes {
  Accumulation accumulation;
  DataType src, dst;
  float scale;
};

// Results are outer x columns, with columns contiguous in memory; terms are rows.
struct ColumnReduction {
  std::int64_t outer, rows, columns;
  std::int64_t outer_stride, row_stride;  // multiples of the width
  int width;                              // columns per thread at once: 1 or full_pack(src)
  int lanes;                              // threads of a block along the columns; a power of 2
  std::int64_t slices;
};

// General case: the results' walk gives where terms begin, the terms' walk (in packs) the offsets from there.
struct TermReduction {
  Walk<1> results, terms;
  int width;
  std::int64_t slices;
};

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

// Work that saturates a multiprocessor's memory pipes: blocks of the column kernel, warps of the term kernel.
constexpr std::int64_t kBlocksPerMultiprocessor = 4;
constexpr std::int64_t kWarpsPerMultiprocessor = 32;
// Fewer terms per thread are not worth another slice.
constexpr std::int64_t kLeastTerms = 8;
// Slices that the second launch handles without taking longer than the first.
constexpr std::int64_t kMostSlices = 512;

constexpr int kLanes = 32;
constexpr int kLeastLanes = 4;  // two memory sectors per row

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// kept, reduced: positions of the same tensor
bool has_columns(const Box& kept, const Box& reduced) {
  return reduced.axes() == 1 && (kept.axes() == 1 || kept.axes() == 2) && kept.stride(kept.axes() - 1) == 1;
}

int lanes_for(std::int64_t packs) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(packs, kLanes))));
}

// Narrows blocks if there would be fewer than multiprocessors; their threads then have fewer rows each.
void fill_multiprocessors(ColumnReduction& reduction, int multiprocessors) {
  const auto blocks = [&] {
    return ceil_divide(reduction.columns, reduction.lanes * reduction.width) * reduction.outer;
  };
  while (reduction.lanes > kLeastLanes && blocks() < multiprocessors) reduction.lanes /= 2;
}

// A planned sum or maximum over axes of a tensor: which kernel, in how many slices.
class Reduction {
 public:
  // src has a simple layout. reduces: by axis. Results are dense, with axes in the order of `results`.
  Reduction(const TensorDesc& src, const std::vector<bool>& reduces, const Layout& results, const ReductionTypes& types,
            const CudaDevice& device)
      : types_(types), multiprocessors_(device.multiprocessors()) {
    Shape kept_shape = src.shape, reduced_shape = src.shape;
    for (int axis = 0; axis < src.shape.rank(); ++axis) (reduces[axis] ? kept_shape : reduced_shape)[axis] = 1;
    const Strides strides = axis_strides(src.shape, src.layout);
    const Box kept(kept_shape, results, {strides}), reduced(reduced_shape, src.layout, {strides});
    results_ = kept.positions();
    if (has_columns(kept, reduced)) {
      kernel_ = by_columns(kept, reduced, types.src, multiprocessors_);
    } else {
      kernel_ = by_terms(kept, reduced, types.src, multiprocessors_);
    }
  }

  std::int64_t scratch_bytes() const {
    return slices() == 1 ? 0 : slices() * results_ * static_cast<std::int64_t>(sizeof(float));
  }

  void run(cudaStream_t stream, const void* src, void* dst, void* scratch) const {
    const auto launch = [&](const ReductionTypes& types, void* to) {
      if (const auto* columns = std::get_if<ColumnReduction>(&kernel_)) {
        launch_column_reduction(stream, *columns, types, src, to);
      } else {
        launch_term_reduction(stream, std::get<TermReduction>(kernel_), types, src, to);
      }
    };
    if (slices() == 1) return launch(types_, dst);
    launch({types_.accumulation, types_.src, DataType::f32, 1.0f}, scratch);

    const bool packs = results_ % full_pack(DataType::f32) == 0;
    ColumnReduction last{.outer = 1,
                         .rows = slices(),
                         .columns = results_,
                         .outer_stride = 0,
                         .row_stride = results_,
                         .width = packs ? full_pack(DataType::f32) : 1,
                         .lanes = 1,
                         .slices = 1};
    last.lanes = lanes_for(last.columns / last.width);
    fill_multiprocessors(last, multiprocessors_);
    const Accumulation accumulation =
        types_.accumulation == Accumulation::maximum ? Accumulation::maximum : Accumulation::sum;
    launch_column_reduction(stream, last, {accumulation, DataType::f32, types_.dst, types_.scale}, scratch, dst);
  }

 private:
  static ColumnReduction by_columns(const Box& kept, const Box& reduced, DataType type, int multiprocessors) {
    const int inner = kept.axes() - 1;
    const int pack = full_pack(type);
    const bool packs = kept.allows_packs(pack) && reduced.stride(0) % pack == 0;
    ColumnReduction reduction{.outer = inner == 0 ? 1 : kept.extent(0),
                              .rows = reduced.extent(0),
                              .columns = kept.extent(inner),
                              .outer_stride = inner == 0 ? 0 : kept.stride(0),
                              .row_stride = reduced.stride(0),
                              .width = packs ? pack : 1,
                              .lanes = 1,
                              .slices = 1};
    reduction.lanes = lanes_for(reduction.columns / reduction.width);
    const std::int64_t blocks = ceil_divide(reduction.columns, reduction.lanes * reduction.width) * reduction.outer;
    const std::int64_t groups = kReductionThreads / reduction.lanes;
    const std::int64_t useful = std::min(kMostSlices, reduction.rows / (groups * kLeastTerms));
    reduction.slices = std::clamp(kBlocksPerMultiprocessor * multiprocessors / blocks, std::int64_t{1},
                                  std::max(useful, std::int64_t{1}));
    if (reduction.slices == 1) fill_multiprocessors(reduction, multiprocessors);
    return reduction;
  }

  static TermReduction by_terms(const Box& kept, const Box& reduced, DataType type, int multiprocessors) {
    const int pack = full_pack(type);
    bool packs = reduced.axes() > 0 && reduced.stride(reduced.axes() - 1) == 1 && reduced.allows_packs(pack);
    for (int axis = 0; axis < kept.axes(); ++axis) packs = packs && kept.stride(axis) % pack == 0;
    const int width = packs ? pack : 1;
    TermReduction reduction{.results = kept.walk<1>(), .terms = reduced.walk<1>(width), .width = width, .slices = 1};
    constexpr std::int64_t kWarp = 32;
    const std::int64_t useful = reduction.terms.positions / (kWarp * kLeastTerms);
    reduction.slices = std::clamp(kWarpsPerMultiprocessor * multiprocessors / kept.positions(), std::int64_t{1},
                                  std::max(useful, std::int64_t{1}));
    return reduction;
  }

  std::int64_t slices() const {
    return std::visit([](const auto& kernel) { return kernel.slices; }, kernel_);
  }

  std::int64_t results_;
  ReductionTypes types_;
  int multiprocessors_;
  std::variant<ColumnReduction, TermReduction> kernel_;
};

// By axis; no axes means all.
std::vector<bool> reduced_axes(const std::vector<int>& axes, int rank) {
  std::vector<bool> reduces(rank, axes.empty());
  for (const int axis : axes) reduces[axis] = true;
  return reduces;
}

// Activations take the input's type and, if all axes are kept, layout. Others are f32: losses, variables' gradients.
Format result_format(const KernelRequest& request, const Format& src) {
  const Layout* const wish = simple_wish(request);
  const int rank = request.node.outputs[0].shape.rank();
  const bool activation = rank >= 2 && wish == nullptr;
  const DataType type = activation ? src.dtype : DataType::f32;
  if (rank != request.inputs[0].shape.rank()) return {Layout::plain(rank), type};
  return {wish != nullptr ? *wish : src.layout, type};
}

KernelChoice reduction_kernel(const KernelRequest& request, const Format& src, const Format& dst, Reduction reduction,
                              CudaDevice& device) {
  const std::int64_t scratch_bytes = reduction.scratch_bytes();
  KernelChoice choice = function_kernel(
      request, "own", [plan = std::move(reduction), &device](const Operands& operands, const RunContext&) {
        plan.run(device.stream(), operands.input<void>(0), operands.output<void>(), operands.scratch<std::byte>());
      });
  choice.inputs = {src};
  choice.outputs = {dst};
  choice.scratch_bytes = scratch_bytes;
  return choice;
}

}  // namespace

KernelChoice make(const op::Reduce& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format src = as_it_comes(request.inputs[0]);
  const Format dst = result_format(request, src);
  const std::int64_t terms = shape.elements() / request.node.outputs[0].shape.elements();
  const bool mean = operation.kind == op::ReduceKind::mean;
  const bool maximum = operation.kind == op::ReduceKind::max;
  const ReductionTypes types{.accumulation = maximum ? Accumulation::maximum : Accumulation::sum,
                             .src = src.dtype,
                             .dst = dst.dtype,
                             .scale = mean ? static_cast<float>(1.0 / static_cast<double>(terms)) : 1.0f};
  // If reduced axes are dropped, the result is plain.
  const Layout order = operation.keep_dims ? dst.layout : Layout::plain(shape.rank());
  return reduction_kernel(
      request, src, dst,
      Reduction({src.dtype, shape, src.layout}, reduced_axes(operation.axes, shape.rank()), order, types, device),
      device);
}

KernelChoice make(const op::L2Loss& operation, const KernelRequest& request, CudaDevice& device) {
  const Shape& shape = request.inputs[0].shape;
  const Format src = as_it_comes(request.inputs[0]);
  const Format dst = Layout::plain(0);
  const ReductionTypes types{
      .accumulation = Accumulation::sum_of_squares, .src = src.dtype, .dst = dst.dtype, .scale = operation.scale / 2};
  return reduction_kernel(
      request, src, dst,
      Reduction({src.dtype, shape, src.layout}, reduced_axes({}, shape.rank()), src.layout, types, device), device);
}

}  // namespace trireme::cuda
