// An option, declared once: its name, its value in a struct, the values allowed, its help, and what it means to
// studies. The command line, configuration files, checks, records, banners, studies and shell completion all read these
// tables (tables.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/base/json.hpp"

namespace trireme::config {

enum class Kind : std::uint8_t { flag, integer, number, text, texts };

enum class Role : std::uint8_t {
  setting,      // another value is another configuration
  chosen,       // likewise if it is given; if not, each run finds a value by itself
  measurement,  // how long, how often or where is measured: the same configuration
  run,          // what a run shows, writes or belongs to: not for studies, which decide that themselves
};

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above = false;  // low itself is not allowed
  bool below = false;  // high itself is not allowed
};
constexpr Range kAboveZero{.low = 0, .above = true};
constexpr Range kZeroOrMore{.low = 0};
constexpr Range kShare{.low = 0, .high = 1, .below = true};
constexpr Range kPositiveCount{.low = 1, .high = 1e9};
constexpr Range kSeconds{.low = 0, .high = 1e6, .above = true};

struct Option {
  std::string name = {};          // long name without dashes: "batch-size"
  std::string group = "Options";  // of the help
  std::string help = {};
  Role role = Role::setting;
  std::vector<std::string> names = {};  // the texts allowed; empty: any
  std::optional<Range> range = {};      // the numbers allowed
  // In studies: how a value reads, "batch {}"; for a count also its plural, "{} thread|{} threads"; for a flag off and
  // on, "forward + backward|forward". Empty: name and value. And the title of an axis; empty: the name.
  std::string label = {}, title = {};
  int identity = 0;              // above 0: settings that tell configurations apart first, in this order
  Json alone = {};               // of a launch: the value that a command has without one; a flag is off
  std::string environment = {};  // variable that sets it if it is not given
  std::string spelling = {};     // on the command line; empty: "--" and the name
  bool shows_default = true;     // in the help; else the help says what happens without it
  // Set by option() from the member.
  Kind kind = Kind::text;
  std::function<Json(const void*)> get = {};  // null: not given
  std::function<void(void*, const Json&)> set = {};
  std::function<bool*(void*)> flag = {};  // of Kind::flag: the member

  std::string key() const;  // in records: "batch_size"
};

// Error(bad_input) names the option, the value and what is allowed.
void check(const Option& option, const Json& value);
// Error(bad_input), beginning with `where`, if the value is not of the option's kind or not allowed.
void check(const Option& option, const Json& value, const std::string& where);
// "--batch-size", "16"; a flag that is off: "--bind=false".
std::vector<std::string> words_of(const std::string& name, const Json& value);
// Whether a command has this value of a launch's option without a launch.
bool is_alone(const Option& option, const Json& value);
// How studies print a value, and "" if the option does not say.
std::string label_of(const Option& option, const Json& value);

namespace detail {
template <typename T>
struct Value {
  using type = T;
  static constexpr bool kOptional = false;
};
template <typename T>
struct Value<std::optional<T>> {
  using type = T;
  static constexpr bool kOptional = true;
};
template <typename Owner, typename Member>
Owner owner(Member Owner::*member);
template <typename Object, typename Owner, typename Member, typename... More>
auto& follow(Object& object, Member Owner::*first, More... more) {
  if constexpr (sizeof...(more) == 0) {
    return object.*first;
  } else {
    return follow(object.*first, more...);
  }
}
}  // namespace detail

// The option of a member, or of a member's member: option<&Step::data, &Data::dir>({.name = "data-dir", ...}).
template <typename Struct, auto... members>
Option option(Option facts) {
  using Member = std::remove_reference_t<decltype(detail::follow(std::declval<Struct&>(), members...))>;
  using Value = detail::Value<Member>;
  using T = typename Value::type;
  facts.kind = std::is_same_v<T, bool>          ? Kind::flag
               : std::is_integral_v<T>          ? Kind::integer
               : std::is_floating_point_v<T>    ? Kind::number
               : std::is_same_v<T, std::string> ? Kind::text
                                                : Kind::texts;
  facts.shows_default = facts.shows_default && !Value::kOptional && !std::is_same_v<T, bool>;
  facts.get = [is_choice = !facts.names.empty()](const void* object) -> Json {
    const auto& member = detail::follow(*static_cast<const Struct*>(object), members...);
    if constexpr (Value::kOptional) {
      return member ? Json(*member) : Json(nullptr);
    } else if constexpr (requires { member.empty(); }) {
      return member.empty() && !is_choice ? Json(nullptr) : Json(member);
    } else {
      return member;
    }
  };
  facts.set = [](void* object, const Json& value) {
    auto& member = detail::follow(*static_cast<Struct*>(object), members...);
    if constexpr (std::is_same_v<T, std::string>) {
      member = value.is_string() ? value.template get<T>() : value.dump();
    } else {
      member = value.template get<T>();
    }
  };
  if constexpr (std::is_same_v<Member, bool>) {
    facts.flag = [](void* object) { return &detail::follow(*static_cast<Struct*>(object), members...); };
  }
  return facts;
}

// The same: entry<&Step::data, &Data::dir>("data-dir", "Folder of the images", {...}).
template <auto first, auto... more>
Option entry(const char* name, std::string help, Option facts = {}) {
  facts.name = name;
  facts.help = std::move(help);
  return option<decltype(detail::owner(first)), first, more...>(std::move(facts));
}

// Appends the options of a group of the help.
void add(std::vector<Option>& all, const char* group, std::vector<Option> options);

// The options of a struct.
template <typename Struct>
class Table {
 public:
  explicit Table(std::vector<Option> options) : options_(std::move(options)) {}

  auto begin() const { return options_.begin(); }
  auto end() const { return options_.end(); }
  const Option* find(std::string_view name) const {
    for (const Option& each : options_) {
      if (each.name == name) return &each;
    }
    return nullptr;
  }
  // Error(bad_input) for the first value that is not allowed.
  void check(const Struct& object) const {
    for (const Option& each : options_) config::check(each, each.get(&object));
  }
  // Those in a group of the help that do not have their defaults.
  std::vector<const Option*> changed(const Struct& object, std::string_view group) const {
    const Struct usual;
    std::vector<const Option*> changed;
    for (const Option& each : options_) {
      if (each.group == group && each.get(&object) != each.get(&usual)) changed.push_back(&each);
    }
    return changed;
  }
  // Of the options with these names: as on the command line.
  std::vector<std::string> words(const Struct& object, const std::vector<std::string>& names) const {
    std::vector<std::string> words;
    for (const Option& each : options_) {
      if (std::ranges::find(names, each.name) == names.end()) continue;
      for (std::string& word : words_of(each.name, each.get(&object))) words.push_back(std::move(word));
    }
    return words;
  }
  // By key. Leaves out what is not given, and what belongs to a run.
  Json json(const Struct& object) const {
    Json json = Json::object();
    for (const Option& each : options_) {
      const Json value = each.get(&object);
      if (!value.is_null() && each.role != Role::run) json[each.key()] = value;
    }
    return json;
  }

 private:
  std::vector<Option> options_;
};

}  // namespace trireme::config
