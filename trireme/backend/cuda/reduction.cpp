#include <algorithm>
#include <bit>
#include <variant>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/reduction_kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

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

// A planned sum or maximum over axes of a tensor: which kernel of reduction_kernels.hpp, in how many slices.
class Reduction {
 public:
  // src has a simple layout. reduces: by axis. Results are dense, with axes in the order of `results`.
  Reduction(const TensorDesc& src, const std::vector<bool>& reduces, const Layout& results, const ReductionTypes& types,
            const CudaDevice& device);

  std::int64_t scratch_bytes() const;
  void run(cudaStream_t stream, const void* src, void* dst, void* scratch) const;

 private:
  static ColumnReduction by_columns(const Box& kept, const Box& reduced, DataType type, int multiprocessors);
  static TermReduction by_terms(const Box& kept, const Box& reduced, DataType type, int multiprocessors);
  std::int64_t slices() const;

  std::int64_t results_;
  ReductionTypes types_;
  int multiprocessors_;
  std::variant<ColumnReduction, TermReduction> kernel_;
};

ColumnReduction Reduction::by_columns(const Box& kept, const Box& reduced, DataType type, int multiprocessors) {
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

TermReduction Reduction::by_terms(const Box& kept, const Box& reduced, DataType type, int multiprocessors) {
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

Reduction::Reduction(const TensorDesc& src, const std::vector<bool>& reduces, const Layout& results,
                     const ReductionTypes& types, const CudaDevice& device)
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

std::int64_t Reduction::slices() const {
  return std::visit([](const auto& kernel) { return kernel.slices; }, kernel_);
}

std::int64_t Reduction::scratch_bytes() const {
  return slices() == 1 ? 0 : slices() * results_ * static_cast<std::int64_t>(sizeof(float));
}

void Reduction::run(cudaStream_t stream, const void* src, void* dst, void* scratch) const {
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
