#include "trireme/base/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trireme {

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::f32:
      return "f32";
    case DataType::i32:
      return "i32";
    case DataType::bf16:
      return "bf16";
    case DataType::f16:
      break;
  }
  return "f16";
}

std::int64_t size_of(DataType type) { return is_half(type) ? 2 : 4; }

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (auto d : dims_) n *= d;
  return n;
}

std::string to_string(const Shape& shape) {
  if (shape.rank() == 0) return "scalar";
  return fmt::format("{}", fmt::join(shape.dims(), "x"));
}

}  // namespace trireme
