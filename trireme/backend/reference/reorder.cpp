#include <algorithm>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"
#include "trireme/base/bfloat16.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/float16.hpp"

namespace trireme::reference {
namespace {

using AxisOffsets = std::vector<std::vector<std::int64_t>>;

// The offset of the position-th element in row-major order.
std::int64_t offset_of(std::int64_t position, const AxisOffsets& offsets) {
  std::int64_t sum = 0;
  for (auto axis = offsets.rbegin(); axis != offsets.rend(); ++axis) {
    const std::int64_t extent = std::ssize(*axis);
    sum += (*axis)[position % extent];
    position /= extent;
  }
  return sum;
}

template <typename From, typename To>
KernelChoice reorder(const TensorDesc& from, const TensorDesc& to) {
  auto loop = [source = axis_offsets(from), destination = axis_offsets(to), elements = from.shape.elements(),
               padded_elements = to.layout.elements(from.shape)](const Operands& operands, const RunContext&) {
    const auto* src = operands.input<From>(0);
    auto* dst = operands.output<To>();
    if (padded_elements != elements) std::fill_n(dst, padded_elements, To{});
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < elements; ++i)
      dst[offset_of(i, destination)] = static_cast<To>(src[offset_of(i, source)]);
  };
  KernelChoice choice;
  choice.inputs = {from.format()};
  choice.outputs = {to.format()};
  choice.implementation = "plain loops";
  choice.kernel = std::make_unique<FunctionKernel<decltype(loop)>>(std::move(loop));
  return choice;
}

}  // namespace

KernelChoice make_reorder(const TensorDesc& from, const Format& to) {
  const TensorDesc target{to.dtype, from.shape, to.layout};
  if (from.dtype == to.dtype) {
    return is_half(to.dtype) ? reorder<std::uint16_t, std::uint16_t>(from, target)
                             : reorder<std::uint32_t, std::uint32_t>(from, target);
  }
  if (from.dtype == DataType::f32 && to.dtype == DataType::bf16) return reorder<float, BFloat16>(from, target);
  if (from.dtype == DataType::f32 && to.dtype == DataType::f16) return reorder<float, Float16>(from, target);
  if (from.dtype == DataType::bf16 && to.dtype == DataType::f32) return reorder<BFloat16, float>(from, target);
  if (from.dtype == DataType::f16 && to.dtype == DataType::f32) return reorder<Float16, float>(from, target);
  fail(ErrorKind::failed, "there is no conversion from {} to {}", to_string(from.dtype), to_string(to.dtype));
}

}  // namespace trireme::reference
