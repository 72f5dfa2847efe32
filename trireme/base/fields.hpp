// Structs as JSON, by one list of their members: kFields<Struct>. Used by records, and by messages between ranks.
//
//   template <>
//   inline constexpr auto kFields<Task> = std::tuple(field("role", &Task::role), field("host", &Task::host));
//
// Unmeasured numbers are null. Reading never fails, for records of older versions and of other programs: a member whose
// field is missing or of another kind keeps its value, and unknown fields are ignored.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/base/json.hpp"

namespace trireme {

enum class Presence : bool { always, if_set };  // if_set: left out if empty, false or none

template <typename Struct, typename T>
struct Field {
  const char* name;
  T Struct::*member;
  Presence presence;
};
template <typename Struct, typename T>
constexpr Field<Struct, T> field(const char* name, T Struct::*member, Presence presence = Presence::always) {
  return {name, member, presence};
}

template <typename Struct>
inline constexpr auto kFields = nullptr;

template <typename T>
concept HasFields = !std::is_same_v<std::remove_cv_t<decltype(kFields<T>)>, std::nullptr_t>;

namespace detail {
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <typename T>
bool is_unset(const T& value) {
  if constexpr (kIsOptional<T>) {
    return !value.has_value();
  } else if constexpr (kIsList<T>) {
    return value.empty();
  } else if constexpr (HasFields<T>) {
    return false;
  } else {
    return value == T{};
  }
}
}  // namespace detail

template <typename T>
Json value_to_json(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else if constexpr (detail::kIsOptional<T>) {
    return value ? value_to_json(*value) : Json(nullptr);
  } else if constexpr (detail::kIsList<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(value_to_json(item));
    return list;
  } else if constexpr (HasFields<T>) {
    Json object = Json::object();
    const auto add = [&](const auto& field) {
      const auto& member = value.*field.member;
      if (field.presence == Presence::if_set && detail::is_unset(member)) return;
      object[field.name] = value_to_json(member);
    };
    std::apply([&](const auto&... fields) { (add(fields), ...); }, kFields<T>);
    return object;
  } else {
    return value;
  }
}

// False, leaving the value as it is, if the JSON is of another kind.
template <typename T>
bool value_from_json(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, Json>) {
    value = json;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    value = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    const bool is_whole = json.is_number_float() && json.get<double>() == std::trunc(json.get<double>());
    if (!json.is_number_integer() && !is_whole) return false;  // other programs may write 2e9
    value = json.get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number() || !std::isfinite(json.get<double>())) return false;
    value = json.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
  } else if constexpr (detail::kIsOptional<T>) {
    typename T::value_type inner{};
    if (!json.is_null() && !value_from_json(json, inner)) return false;
    value = json.is_null() ? T() : T(std::move(inner));
  } else if constexpr (detail::kIsList<T>) {
    value.clear();
    if constexpr (std::is_same_v<typename T::value_type, std::string>) {
      if (json.is_string()) value.push_back(json.get<std::string>());  // one is a list of one
    }
    if (!json.is_array()) return !value.empty();
    for (const Json& entry : json) {
      typename T::value_type item{};
      if (value_from_json(entry, item)) value.push_back(std::move(item));
    }
  } else {
    static_assert(HasFields<T>, "this type needs a list of its fields");
    if (!json.is_object()) return false;
    const auto read = [&](const auto& field) {
      if (const auto found = json.find(field.name); found != json.end()) value_from_json(*found, value.*field.member);
    };
    std::apply([&](const auto&... fields) { (read(fields), ...); }, kFields<T>);
  }
  return true;
}

template <HasFields T>
Json to_json(const T& value) {
  return value_to_json(value);
}

template <HasFields T>
T from_json(const Json& json) {
  T value;
  value_from_json(json, value);
  return value;
}

}  // namespace trireme
