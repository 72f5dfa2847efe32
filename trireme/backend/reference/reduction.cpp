#include <algorithm>
#include <limits>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// src's extents on the kept and on the reduced axes, 1 on the others. A position in one plus a position in the other is
// an element of src.
struct ReducedShapes {
  Shape kept, reduced;

  ReducedShapes(const op::Reduce& operation, const Shape& src) : kept(src), reduced(src) {
    for (int axis = 0; axis < src.rank(); ++axis) {
      const bool reduces = operation.axes.empty() || std::ranges::count(operation.axes, axis) > 0;
      (reduces ? kept : reduced)[axis] = 1;
    }
  }
};

}  // namespace

KernelChoice make(const op::Reduce& operation, const KernelRequest& request) {
  const Shape& src_shape = request.inputs[0].shape;
  const ReducedShapes shapes(operation, src_shape);
  return plain_loops(request, [=, kind = operation.kind, strides = row_major_strides(src_shape)](
                                  const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    float* dst = operands.output();
    const std::int64_t results = shapes.kept.elements(), terms = shapes.reduced.elements();
#pragma omp parallel for schedule(static)
    for (std::int64_t result = 0; result < results; ++result) {
      const float* first = src + strided_offset(result, shapes.kept, strides);
      double sum = 0, maximum = -std::numeric_limits<double>::infinity();
      for (std::int64_t term = 0; term < terms; ++term) {
        const double value = first[strided_offset(term, shapes.reduced, strides)];
        sum += value;
        maximum = std::max(maximum, value);
      }
      switch (kind) {
        case op::ReduceKind::sum:
          dst[result] = static_cast<float>(sum);
          break;
        case op::ReduceKind::mean:
          dst[result] = static_cast<float>(sum / static_cast<double>(terms));
          break;
        case op::ReduceKind::max:
          dst[result] = static_cast<float>(maximum);
          break;
      }
    }
  });
}

KernelChoice make(const op::L2Loss& operation, const KernelRequest& request) {
  return plain_loops(request, [scale = operation.scale, elements = request.inputs[0].shape.elements()](
                                  const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    double squares = 0;
    for (std::int64_t i = 0; i < elements; ++i) squares += static_cast<double>(src[i]) * src[i];
    *operands.output() = static_cast<float>(scale * squares / 2);
  });
}

}  // namespace trireme::reference
