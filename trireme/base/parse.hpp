// Values from text: numbers, and enumerators by their names.
#pragma once

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme {

// All of the text must be the number. `format` as for std::from_chars().
template <typename Number, typename... Format>
std::optional<Number> parse_number(std::string_view text, Format... format) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, format...);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

template <typename Value, std::size_t kCount>
using Names = std::array<std::pair<Value, std::string_view>, kCount>;  // of all values

template <typename Value, std::size_t kCount>
std::string_view name_of(Value value, const Names<Value, kCount>& names) {
  for (const auto& [named, name] : names) {
    if (named == value) return name;
  }
  return "unknown";
}

// Error(bad_input), "unknown <what> '<text>'; choose one of ...".
template <typename Value, std::size_t kCount>
Value parse_name(std::string_view text, const Names<Value, kCount>& names, std::string_view what) {
  std::vector<std::string_view> allowed;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    allowed.push_back(name);
  }
  bad_input("unknown {} '{}'; choose one of {}", what, text, fmt::join(allowed, ", "));
}

}  // namespace trireme
