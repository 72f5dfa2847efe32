#include <algorithm>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"
#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

template <typename Function>
KernelChoice reorder_kernel(const TensorDesc& from, const Format& to, std::string implementation, Function function) {
  KernelChoice choice;
  choice.inputs = {from.format()};
  choice.outputs = {to};
  choice.implementation = std::move(implementation);
  choice.kernel = std::make_unique<FunctionKernel<Function>>(std::move(function));
  return choice;
}

KernelChoice same_order(const TensorDesc& from, const Format& to, CudaDevice& device) {
  const Conversion types{from.dtype, to.dtype};
  const std::int64_t elements = from.layout.elements(from.shape);
  if (from.dtype != to.dtype) {
    return reorder_kernel(from, to, "own:convert", [=, &device](const Operands& operands, const RunContext&) {
      launch_convert(device.stream(), types, elements, operands.input<void>(0), operands.output<void>());
    });
  }
  KernelChoice choice =
      reorder_kernel(from, to, "copy", [bytes = from.bytes(), &device](const Operands& operands, const RunContext&) {
        const auto* src = operands.input<void>(0);
        auto* dst = operands.output<void>();
        if (src != dst) device.copy(dst, src, bytes);
      });
  choice.in_place = {{0, 0}};
  return choice;
}

// box: in the order of dst, over src.
bool is_transposition(const Box& box) {
  return (box.axes() == 2 || box.axes() == 3) && box.stride(box.axes() - 2) == 1;
}

KernelChoice transposed(const TensorDesc& from, const Format& to, const Box& box, CudaDevice& device) {
  const int columns = box.axes() - 1, rows = box.axes() - 2;
  const bool batched = box.axes() == 3;
  const Transposition shape{.batches = batched ? box.extent(0) : 1,
                            .rows = box.extent(rows),
                            .columns = box.extent(columns),
                            .src_batch_stride = batched ? box.stride(0) : 0,
                            .src_column_stride = box.stride(columns)};
  const bool image = shape.columns == kImageChannels && shape.rows % kImageRun == 0 &&
                     shape.src_batch_stride % kImageRun == 0 && shape.src_column_stride % kImageRun == 0;
  const auto launch = image ? launch_image_transpose : launch_transpose;
  const Conversion types{from.dtype, to.dtype};
  return reorder_kernel(from, to, image ? "own:image" : "own:transpose",
                        [=, &device](const Operands& operands, const RunContext&) {
                          launch(device.stream(), types, shape, operands.input<void>(0), operands.output<void>());
                        });
}

DigitOrder digits_of(const Shape& shape, const Layout& layout) {
  DigitOrder order;
  std::int64_t stride = 1;
  std::vector<std::int64_t> places(layout.order.size(), 1);
  const auto add = [&](int axis, std::int64_t extent) {
    if (order.digits == kMaxDigits) bad_input("layout {} has too many blocks", layout.name());
    std::int64_t& place = places[axis];
    order.axis[order.digits] = axis;
    order.extent[order.digits] = extent;
    order.place[order.digits] = place;
    order.stride[order.digits] = stride;
    ++order.digits;
    place *= extent;
    stride *= extent;
  };
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) add(block->axis, block->size);
  for (auto axis = layout.order.rbegin(); axis != layout.order.rend(); ++axis) {
    const std::int64_t block = places[*axis];
    add(*axis, (shape[*axis] + block - 1) / block);
  }
  return order;
}

// The fold for which this is image_layout, or 0.
int fold_of(const Format& format) {
  for (const int fold : {1, 2}) {
    if (format.dtype != DataType::i32 && format.layout == image_layout(fold, format.dtype)) return fold;
  }
  return 0;
}

KernelChoice folded_image(const TensorDesc& from, const Format& to, CudaDevice& device) {
  const Images images{.count = from.shape[0],
                      .channels = static_cast<int>(from.shape[1]),
                      .height = from.shape[2],
                      .width = from.shape[3],
                      .fold = fold_of(to)};
  const Conversion types{from.dtype, to.dtype};
  return reorder_kernel(from, to, "own:folded_image", [=, &device](const Operands& operands, const RunContext&) {
    launch_image_reorder(device.stream(), types, images, operands.input<void>(0), operands.output<void>());
  });
}

KernelChoice any_order(const TensorDesc& from, const Format& to, CudaDevice& device) {
  const AnyReorder reorder = any_reorder(from, {to.dtype, from.shape, to.layout});
  const Conversion types{from.dtype, to.dtype};
  return reorder_kernel(from, to, "own:any", [=, &device](const Operands& operands, const RunContext&) {
    launch_any_reorder(device.stream(), types, reorder, operands.input<void>(0), operands.output<void>());
  });
}

}  // namespace

AnyReorder any_reorder(const TensorDesc& from, const TensorDesc& to, std::array<std::int64_t, 4> shift) {
  const int rank = from.shape.rank();
  if (rank > kMaxAxes)
    bad_input("a tensor of shape {} has too many axes, expected at most {}", to_string(from.shape), kMaxAxes);
  AnyReorder reorder{.positions = to.layout.elements(to.shape),
                     .rank = rank,
                     .src = digits_of(from.shape, from.layout),
                     .dst = digits_of(to.shape, to.layout)};
  std::copy(from.shape.begin(), from.shape.end(), reorder.extents);
  std::copy(shift.begin(), shift.end(), reorder.shift);
  return reorder;
}

KernelChoice make_reorder(const TensorDesc& from, const Format& to, CudaDevice& device) {
  if (from.dtype != to.dtype && (from.dtype == DataType::i32 || to.dtype == DataType::i32))
    fail(ErrorKind::failed, "there is no conversion from {} to {}", to_string(from.dtype), to_string(to.dtype));
  if (from.layout == to.layout) return same_order(from, to, device);
  if (fold_of(to) > 0 && from.layout == Layout::plain(4) && from.shape[1] <= filled_channels(fold_of(to), to.dtype))
    return folded_image(from, to, device);
  if (!from.layout.blocks.empty() || !to.layout.blocks.empty()) return any_order(from, to, device);
  const Box box(from.shape, to.layout, {axis_strides(from.shape, from.layout)});
  if (box.is_one_run()) return same_order(from, to, device);
  return is_transposition(box) ? transposed(from, to, box, device) : any_order(from, to, device);
}

}  // namespace trireme::cuda
