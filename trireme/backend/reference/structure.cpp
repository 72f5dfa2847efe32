#include <algorithm>
#include <cstring>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// A box inside a larger row-major tensor.
struct Box {
  Shape shape;
  Strides outer_strides;  // of the tensor around the box
  std::int64_t first = 0;

  Box(Shape shape_, const Shape& outer, const std::vector<std::int64_t>& begin)
      : shape(std::move(shape_)), outer_strides(row_major_strides(outer)) {
    for (std::size_t axis = 0; axis < begin.size(); ++axis) first += begin[axis] * outer_strides[axis];
  }
};

// Boxes of the parts' shapes, one behind the other along an axis.
template <typename Parts>
std::vector<Box> boxes_along(int axis, const Parts& parts, const Shape& outer) {
  std::vector<Box> boxes;
  std::vector<std::int64_t> corner(outer.rank(), 0);
  for (const auto& part : parts) {
    boxes.emplace_back(part.shape, outer, corner);
    corner[axis] += part.shape[axis];
  }
  return boxes;
}

// Copies the box out of its tensor into dense memory, and back.
void extract(const Box& box, const float* outer, float* inner) {
  const std::int64_t elements = box.shape.elements();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < elements; ++i)
    inner[i] = outer[box.first + strided_offset(i, box.shape, box.outer_strides)];
}

void insert(const Box& box, const float* inner, float* outer) {
  const std::int64_t elements = box.shape.elements();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < elements; ++i)
    outer[box.first + strided_offset(i, box.shape, box.outer_strides)] = inner[i];
}

}  // namespace

KernelChoice make(const op::Concat& operation, const KernelRequest& request) {
  const auto boxes = boxes_along(operation.axis, request.inputs, request.node.outputs[0].shape);
  return plain_loops(request, [boxes](const Operands& operands, const RunContext&) {
    for (std::size_t i = 0; i < boxes.size(); ++i) insert(boxes[i], operands.input(i), operands.output());
  });
}

KernelChoice make(const op::Split& operation, const KernelRequest& request) {
  const auto boxes = boxes_along(operation.axis, request.node.outputs, request.inputs[0].shape);
  return plain_loops(request, [boxes](const Operands& operands, const RunContext&) {
    for (std::size_t i = 0; i < boxes.size(); ++i) extract(boxes[i], operands.input(0), operands.output(i));
  });
}

KernelChoice make(const op::Pad& operation, const KernelRequest& request) {
  const Shape& dst = request.node.outputs[0].shape;
  const Box box(request.inputs[0].shape, dst, operation.before);
  return plain_loops(
      request, [box, value = operation.value, elements = dst.elements()](const Operands& operands, const RunContext&) {
        std::fill_n(operands.output(), elements, value);
        insert(box, operands.input(0), operands.output());
      });
}

KernelChoice make(const op::Slice& operation, const KernelRequest& request) {
  const Box box(request.node.outputs[0].shape, request.inputs[0].shape, operation.begin);
  return plain_loops(request, [box](const Operands& operands, const RunContext&) {
    extract(box, operands.input(0), operands.output());
  });
}

KernelChoice make(const op::Reshape&, const KernelRequest& request) {
  KernelChoice choice =
      plain_loops(request, [bytes = request.node.outputs[0].bytes()](const Operands& operands, const RunContext&) {
        std::memmove(operands.output(), operands.input(0), bytes);  // memmove: both may be the same memory
      });
  choice.in_place.emplace_back(0, 0);
  return choice;
}

}  // namespace trireme::reference
