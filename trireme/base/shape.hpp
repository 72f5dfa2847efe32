// Shape and element type of a tensor. Shapes are logical, always batch, channels, height, width (weights: out, in per
// group, height, width), whatever physical layout a plan chooses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Graph tensors are f32 or i32. A plan may store f32 tensors as bf16 or f16 between kernels.
enum class DataType : std::uint8_t { f32, i32, bf16, f16 };

std::string_view to_string(DataType type);
std::int64_t size_of(DataType type);
inline bool is_half(DataType type) { return type == DataType::bf16 || type == DataType::f16; }

class Shape {
 public:
  Shape() = default;  // rank 0: a scalar
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int i) const { return dims_[i]; }
  std::int64_t& operator[](int i) { return dims_[i]; }
  std::int64_t elements() const;
  const std::vector<std::int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> dims_;
};

std::string to_string(const Shape& shape);  // "32x3x224x224"; a scalar is "scalar"

struct TensorType {
  DataType dtype = DataType::f32;
  Shape shape;
  std::int64_t bytes() const { return size_of(dtype) * shape.elements(); }
  bool operator==(const TensorType&) const = default;
};

}  // namespace trireme
