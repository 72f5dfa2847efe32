#include <algorithm>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

using AxisOffsets = std::vector<std::vector<std::int64_t>>;

// Where the position-th element in row-major order lies.
std::int64_t offset_of(std::int64_t position, const AxisOffsets& offsets) {
  std::int64_t sum = 0;
  for (auto axis = offsets.rbegin(); axis != offsets.rend(); ++axis) {
    const auto extent = static_cast<std::int64_t>(axis->size());
    sum += (*axis)[static_cast<std::size_t>(position % extent)];
    position /= extent;
  }
  return sum;
}

}  // namespace

KernelChoice make_reorder(const TensorDesc& from, const Layout& to) {
  const TensorDesc target{from.dtype, from.shape, to};
  auto loop = [source = axis_offsets(from), destination = axis_offsets(target), elements = from.shape.elements(),
               padded_elements = to.elements(from.shape)](const Operands& operands, const RunContext&) {
    const auto* src = operands.input<std::uint32_t>(0);
    auto* dst = operands.output<std::uint32_t>();
    if (padded_elements != elements) std::fill_n(dst, padded_elements, 0);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < elements; ++i) dst[offset_of(i, destination)] = src[offset_of(i, source)];
  };
  KernelChoice choice;
  choice.inputs = {from.layout};
  choice.outputs = {to};
  choice.implementation = "plain loops";
  choice.kernel = std::make_unique<FunctionKernel<decltype(loop)>>(std::move(loop));
  return choice;
}

}  // namespace trireme::reference
