// Kernels that only move elements.
#include <algorithm>
#include <numeric>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// Elements move in units: 16 bytes if everything is a multiple of that, else single elements. Counts are in units.

constexpr int kMostParts = 16;  // per launch

// Concat and split of tensors without blocks along any axis: a row of the whole is a row of each part in turn.
struct Join {
  std::int64_t unit_bytes;
  std::uint32_t positions;   // in the columns of these parts
  FastDivide columns;        // of these parts together
  std::int64_t whole_row;    // of all parts, also those of other launches
  std::int64_t whole_first;  // column of the first of these parts
  int parts;
  std::uint32_t begins[kMostParts + 1];  // first columns, relative to the first of these parts; then the end
};
struct JoinMemory {
  void* whole;
  void* parts[kMostParts];
};

struct BoxMove {
  std::int64_t unit_bytes;
  Walk<2> walk;                       // src, dst; over units, offsets in units
  std::int64_t src_first, dst_first;  // where the boxes begin
};

// function(Unit{}) with a type of this many bytes.
template <typename Function>
void with_unit(std::int64_t bytes, Function function) {
  if (bytes == 16) {
    function(uint4{});
  } else if (bytes == 4) {
    function(std::uint32_t{});
  } else {
    function(std::uint16_t{});
  }
}

// One unit per thread, in the order of the whole tensor.
template <typename Unit, bool kConcat>
__global__ void join_kernel(const __grid_constant__ Join join, const __grid_constant__ JoinMemory memory) {
  const std::uint32_t position = thread_position();
  if (position >= join.positions) return;
  const std::uint32_t row = quotient(position, join.columns);
  const std::uint32_t column = position - row * join.columns.divisor;
  int part = 0;
  while (column >= join.begins[part + 1]) ++part;
  const std::uint32_t begin = join.begins[part], run = join.begins[part + 1] - begin;
  Unit* const whole = static_cast<Unit*>(memory.whole) + row * join.whole_row + join.whole_first + column;
  Unit* const own = static_cast<Unit*>(memory.parts[part]) + static_cast<std::int64_t>(row) * run + (column - begin);
  if constexpr (kConcat) {
    *whole = *own;
  } else {
    *own = *whole;
  }
}

template <bool kConcat>
void launch_join(cudaStream_t stream, const Join& join, const JoinMemory& memory) {
  with_unit(join.unit_bytes, [&]<typename Unit>(Unit) {
    join_kernel<Unit, kConcat><<<blocks_of_threads(join.positions), kThreads, 0, stream>>>(join, memory);
  });
  check(cudaGetLastError(), kConcat ? "a concatenation" : "a split");
}

template <typename Unit>
__global__ void box_move_kernel(const __grid_constant__ BoxMove move, const Unit* src, Unit* dst) {
  const std::uint32_t position = thread_position();
  if (position >= move.walk.positions) return;
  const Offsets<2> offsets = offsets_at(move.walk, position);
  dst[move.dst_first + offsets.of[1]] = src[move.src_first + offsets.of[0]];
}

template <typename Element>
__global__ void fill_kernel(std::int64_t elements, float value, Element* dst) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < elements) dst[i] = from_float<Element>(value);
}

void launch_box_move(cudaStream_t stream, const BoxMove& move, const void* src, void* dst) {
  with_unit(move.unit_bytes, [&]<typename Unit>(Unit) {
    box_move_kernel<<<blocks_of_threads(move.walk.positions), kThreads, 0, stream>>>(
        move, static_cast<const Unit*>(src), static_cast<Unit*>(dst));
  });
  check(cudaGetLastError(), "a copy of a part of a tensor");
}

// One format for all tensors of a concat or split: channels last or a narrow type if any of them has it.
Format common_format(const std::vector<TensorDesc>& tensors) {
  Format format = as_it_comes(tensors[0]);
  for (const TensorDesc& tensor : tensors) {
    if (is_simple(tensor.layout) && !tensor.layout.is_plain()) format.layout = tensor.layout;
    if (is_half(tensor.dtype)) format.dtype = tensor.dtype;
  }
  return format;
}

// The parts of a tensor along an axis, in launches of up to kMostParts each.
std::vector<Join> joins_of(const Shape& whole, const std::vector<std::int64_t>& sizes, int axis, const Format& format) {
  // Axes inside this one extend its runs; axes outside are rows.
  std::int64_t inner = 1, rows = 1;
  bool outside = true;
  for (const int a : format.layout.order) {
    if (a == axis) {
      outside = false;
    } else {
      (outside ? rows : inner) *= whole[a];
    }
  }
  const std::int64_t pack = full_pack(format.dtype);
  const bool packs =
      std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size * inner % pack == 0; });
  const std::int64_t unit = packs ? pack : 1;

  std::vector<Join> joins;
  std::int64_t column = 0;
  for (std::size_t first = 0; first < sizes.size(); first += kMostParts) {
    Join join{};
    join.unit_bytes = unit * size_of(format.dtype);
    join.whole_row = whole[axis] * inner / unit;
    join.whole_first = column;
    join.parts = static_cast<int>(std::min<std::size_t>(kMostParts, sizes.size() - first));
    for (int i = 0; i < join.parts; ++i) {
      const std::int64_t run = sizes[first + static_cast<std::size_t>(i)] * inner / unit;
      join.begins[i + 1] = checked_positions(join.begins[i] + run);
    }
    const std::int64_t columns = join.begins[join.parts];
    join.columns = FastDivide(columns);
    join.positions = checked_positions(rows * columns);
    column += columns;
    joins.push_back(join);
  }
  return joins;
}

std::int64_t first_element(const std::vector<std::int64_t>& begin, const Strides& strides) {
  return std::inner_product(begin.begin(), begin.end(), strides.begin(), std::int64_t{0});
}

// A tensor of a box move, and where the box begins in it.
struct Placed {
  const Shape& tensor;
  std::vector<std::int64_t> begin;
};

BoxMove box_move(const Shape& shape, const Format& format, const Placed& src, const Placed& dst) {
  const Strides src_strides = axis_strides(src.tensor, format.layout);
  const Strides dst_strides = axis_strides(dst.tensor, format.layout);
  const Box box(shape, format.layout, {src_strides, dst_strides});
  BoxMove move{.unit_bytes = size_of(format.dtype),
               .walk = {},
               .src_first = first_element(src.begin, src_strides),
               .dst_first = first_element(dst.begin, dst_strides)};
  const int pack = full_pack(format.dtype);
  if (!box.allows_packs(pack) || move.src_first % pack != 0 || move.dst_first % pack != 0) {
    move.walk = box.walk<2>();
    return move;
  }
  move.walk = box.walk<2>(pack);
  move.unit_bytes *= pack;
  move.src_first /= pack;
  move.dst_first /= pack;
  for (Strides::value_type(&strides)[kMaxAxes] : move.walk.strides) {
    for (std::int64_t& stride : strides) stride /= pack;
  }
  return move;
}

std::vector<std::int64_t> origin(const Shape& shape) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0);
}

}  // namespace

KernelChoice make(const op::Concat& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = common_format(request.inputs);
  std::vector<std::int64_t> sizes;
  for (const TensorDesc& input : request.inputs) sizes.push_back(input.shape[operation.axis]);
  const std::vector<Join> joins = joins_of(request.node.outputs[0].shape, sizes, operation.axis, format);
  KernelChoice choice = function_kernel(request, "own", [joins, &device](const Operands& operands, const RunContext&) {
    std::size_t next = 0;
    for (const Join& join : joins) {
      JoinMemory memory{operands.output<void>(), {}};
      for (int i = 0; i < join.parts; ++i) memory.parts[i] = const_cast<void*>(operands.input<void>(next++));
      launch_join<true>(device.stream(), join, memory);
    }
  });
  choice.inputs.assign(request.inputs.size(), format);
  choice.outputs = {format};
  return choice;
}

KernelChoice make(const op::Split& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const std::vector<Join> joins = joins_of(request.inputs[0].shape, operation.sizes, operation.axis, format);
  KernelChoice choice = function_kernel(request, "own", [joins, &device](const Operands& operands, const RunContext&) {
    std::size_t next = 0;
    for (const Join& join : joins) {
      JoinMemory memory{const_cast<void*>(operands.input<void>(0)), {}};
      for (int i = 0; i < join.parts; ++i) memory.parts[i] = operands.output<void>(next++);
      launch_join<false>(device.stream(), join, memory);
    }
  });
  choice.inputs = {format};
  choice.outputs.assign(operation.sizes.size(), format);
  return choice;
}

KernelChoice make(const op::Pad& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const Shape& src = request.inputs[0].shape;
  const Shape& dst = request.node.outputs[0].shape;
  const BoxMove move = box_move(src, format, {src, origin(src)}, {dst, operation.before});
  KernelChoice choice = function_kernel(
      request, "own",
      [=, elements = dst.elements(), value = operation.value, &device](const Operands& operands, const RunContext&) {
        with_element(format.dtype, [&]<typename Element>(Element) {
          fill_kernel<<<blocks_of_threads(elements), kThreads, 0, device.stream()>>>(elements, value,
                                                                                     operands.output<Element>());
        });
        check(cudaGetLastError(), "filling a tensor");
        launch_box_move(device.stream(), move, operands.input<void>(0), operands.output<void>());
      });
  choice.inputs = choice.outputs = {format};
  return choice;
}

KernelChoice make(const op::Slice& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const Shape& src = request.inputs[0].shape;
  const Shape& dst = request.node.outputs[0].shape;
  const BoxMove move = box_move(dst, format, {src, operation.begin}, {dst, origin(dst)});
  KernelChoice choice = function_kernel(request, "own", [move, &device](const Operands& operands, const RunContext&) {
    launch_box_move(device.stream(), move, operands.input<void>(0), operands.output<void>());
  });
  choice.inputs = choice.outputs = {format};
  return choice;
}

KernelChoice make(const op::Reshape&, const KernelRequest& request, CudaDevice& device) {
  const TensorDesc& src = request.inputs[0];
  const Shape& dst = request.node.outputs[0].shape;
  const std::int64_t bytes = src.shape.elements() * size_of(src.dtype);
  KernelChoice choice = function_kernel(request, "own", [bytes, &device](const Operands& operands, const RunContext&) {
    const auto* from = operands.input<void>(0);
    auto* to = operands.output<void>();
    if (from != to) device.copy(to, from, bytes);
  });
  // Batch x channels x 1 x 1 is row-major in memory in any simple layout.
  const Format format = as_it_comes(src);
  const Layout plain = Layout::plain(src.shape.rank());
  const bool row_major = Box(src.shape, plain, {axis_strides(src.shape, format.layout)}).is_one_run();
  choice.inputs = {{row_major ? format.layout : plain, src.dtype}};
  choice.outputs = {{Layout::plain(dst.rank()), src.dtype}};
  choice.in_place = {{0, 0}};
  return choice;
}

}  // namespace trireme::cuda
