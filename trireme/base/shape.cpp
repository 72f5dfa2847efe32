#include "trireme/base/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace trireme {

std::string_view to_string(DataType type) {
  constexpr std::array kNames{"f32", "i32", "bf16", "f16"};
  return kNames.at(static_cast<std::size_t>(type));
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
