#include "trireme/base/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>

namespace trireme {

Json field(const Json& json, Path path) {
  const Json* found = &json;
  for (const char* key : path) {
    if (!found->is_object()) return nullptr;
    const auto entry = found->find(key);
    if (entry == found->end()) return nullptr;
    found = &*entry;
  }
  return *found;
}

std::optional<double> number_field(const Json& json, Path path) { return value_number(field(json, path)); }

std::string text_field(const Json& json, Path path) {
  const Json found = field(json, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::vector<double> number_list(const Json& json, Path path) {
  std::vector<double> numbers;
  const Json found = field(json, path);
  if (!found.is_array()) return numbers;
  for (const Json& entry : found) {
    if (const auto number = value_number(entry)) numbers.push_back(*number);
  }
  return numbers;
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "default";
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<double> value_number(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

}  // namespace trireme
