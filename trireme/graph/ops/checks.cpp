#include "trireme/graph/ops/checks.hpp"

#include <cmath>
#include <string>

namespace trireme::op {

void expect_inputs(Types inputs, const std::vector<InputSpec>& specs) {
  if (inputs.size() != specs.size()) {
    std::string names;
    for (const InputSpec& spec : specs) {
      names += names.empty() ? "" : ", ";
      names += spec.name;
    }
    bad_input("expected {} inputs ({}), got {}", specs.size(), names, inputs.size());
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (inputs[i].dtype != specs[i].dtype) {
      bad_input("{} has elements of type {}, expected {}", specs[i].name, to_string(inputs[i].dtype),
                to_string(specs[i].dtype));
    }
  }
}

void expect_rank(const TensorType& type, std::string_view name, int rank, std::string_view meaning) {
  if (type.shape.rank() != rank) {
    bad_input("{} has shape {} of rank {}, expected rank {} ({})", name, to_string(type.shape), type.shape.rank(), rank,
              meaning);
  }
}

void expect_rank_at_least(const TensorType& type, std::string_view name, int rank, std::string_view meaning) {
  if (type.shape.rank() < rank) {
    bad_input("{} has shape {} of rank {}, expected rank {} or more ({})", name, to_string(type.shape),
              type.shape.rank(), rank, meaning);
  }
}

void expect_shape(const TensorType& type, std::string_view name, const Shape& expected, std::string_view why) {
  if (type.shape != expected) {
    bad_input("{} has shape {}, expected {} ({})", name, to_string(type.shape), to_string(expected), why);
  }
}

void expect_extents(const Shape& shape, std::string_view what) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 1) {
      bad_input("{} {} has extent {} on axis {}; every extent must be 1 or more", what, to_string(shape), shape[axis],
                axis);
    }
  }
}

void expect_axis(int axis, const Shape& shape) {
  if (axis < 0 || axis >= shape.rank()) {
    bad_input("axis {} does not exist in shape {}; axes are 0 to {}", axis, to_string(shape), shape.rank() - 1);
  }
}

void expect_finite(double value, std::string_view name) {
  if (!std::isfinite(value)) bad_input("{} is {}, expected a finite number", name, value);
}

void expect_not_negative(double value, std::string_view name) {
  if (!std::isfinite(value) || value < 0) bad_input("{} is {}, expected a finite number of 0 or more", name, value);
}

void expect_positive(double value, std::string_view name) {
  if (!std::isfinite(value) || value <= 0) bad_input("{} is {}, expected a finite number above 0", name, value);
}

void expect_in(double value, double low, double high, std::string_view name) {
  if (!(value >= low && value < high))
    bad_input("{} is {}, expected at least {} and less than {}", name, value, low, high);
}

void refuse_fused(bool fused) {
  if (fused)
    bad_input("it has a fused addition or activation; take the gradients of the separate operations, before fusing");
}

double traffic(Types inputs, Types outputs) {
  double bytes = 0;
  for (const TensorType& type : inputs) bytes += static_cast<double>(type.bytes());
  for (const TensorType& type : outputs) bytes += static_cast<double>(type.bytes());
  return bytes;
}

}  // namespace trireme::op
