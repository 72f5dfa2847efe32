#include "trireme/lab/study/study_plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/cluster/host_list.hpp"
#include "trireme/lab/study/duration.hpp"

namespace trireme::lab {
namespace {

constexpr std::array<const char*, 14> kKeys{
    "schema", "name", "title",       "question", "source", "figure", "command",
    "fixed",  "vary", "constraints", "repeats",  "budget", "cores",  "hardware-threads"};
constexpr std::array<const char*, 7> kFigures{"scaling",     "heatmap",          "bars", "servers",
                                              "io_overhead", "forward_backward", "lines"};
constexpr std::int64_t kMostRepeats = 1000;
constexpr std::int64_t kMostCores = 100'000;

template <typename Names>
bool is_one_of(const std::string& name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

class PlanParser {
 public:
  PlanParser(const std::string& source, const OptionCatalog& options) : source_(source), options_(options) {}
  StudyPlan parse(const Json& json, const StudyMachine& machine) const {
    if (!json.is_object()) wrong("a plan is a JSON object, {{...}}, not {}", json.type_name());
    check_keys(json);
    if (const std::string schema = text(json, "schema"); schema != kPlanSchema && !schema.empty()) {
      wrong("schema: '{}' is not a plan; a plan has {}", schema, kPlanSchema);
    }
    if (const std::string command = text(json, "command"); command != "bench" && !command.empty()) {
      wrong("command: '{}' cannot be swept; it must be bench", command);
    }
    StudyPlan plan{.file = source_,
                   .name = name(json),
                   .title = text(json, "title"),
                   .question = text(json, "question"),
                   .source = text(json, "source"),
                   .figure = figure(json),
                   .fixed = fixed(json),
                   .axes = {},
                   .constraints = constraints(json),
                   .repeats = integer(json, "repeats", 5, kMostRepeats),
                   .budget_seconds = std::nullopt,
                   .machine = {.cores = static_cast<int>(integer(json, "cores", machine.cores, kMostCores)),
                               .hardware_threads = static_cast<int>(
                                   integer(json, "hardware-threads", machine.hardware_threads, kMostCores))}};
    if (const std::string budget = text(json, "budget"); !budget.empty()) {
      plan.budget_seconds = parse_duration(budget, place("budget"));
    }
    plan.axes = axes(json, plan);
    check_set_once(plan);
    return plan;
  }

 private:
  template <typename... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }
  std::string place(const std::string& key) const { return fmt::format("{}: {}", source_, key); }

  void check_keys(const Json& json) const {
    for (const auto& [key, value] : json.items()) {
      if (!is_one_of(key, kKeys)) wrong("unknown key '{}'; the keys of a plan are {}", key, fmt::join(kKeys, ", "));
    }
  }

  std::string text(const Json& json, const char* key) const {
    const Json value = json.value(key, Json());
    if (value.is_null()) return "";
    if (!value.is_string()) wrong("{}: must be text, not {}", key, value.dump());
    return value.get<std::string>();
  }

  // It names a folder.
  std::string name(const Json& json) const {
    const std::string name = text(json, "name");
    constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (name.empty() || name.front() == '.' || name.find_first_not_of(kAllowed) != std::string::npos) {
      wrong(
          "name: '{}': must be one word of letters, digits, '-', '_' and '.', as the results go to a folder of this "
          "name",
          name);
    }
    return name;
  }

  std::string figure(const Json& json) const {
    const std::string figure = text(json, "figure");
    if (!figure.empty() && !is_one_of(figure, kFigures)) {
      wrong("figure: '{}': must be one of {}", figure, fmt::join(kFigures, ", "));
    }
    return figure;
  }

  std::int64_t integer(const Json& json, const char* key, std::int64_t usual, std::int64_t most) const {
    const Json value = json.value(key, Json());
    if (value.is_null()) return usual;
    if (!value.is_number_integer() || value < 1 || value > most) {
      wrong("{}: must be a whole number from 1 to {}, not {}", key, most, value.dump());
    }
    return value.get<std::int64_t>();
  }

  Setting setting(const std::string& option, const Json& value, const std::string& where) const {
    const config::Option& info = options_.get(option, where);
    if (value.is_null()) {
      bad_input("{}: the plan does not set {}; give it with --set {}=VALUE", where, option, option);
    }
    if (const auto formula = formula_text(value)) {
      Formula(*formula, fmt::format("{}.{}", where, option));
    } else {
      config::check(info, value, where);
    }
    return {option, value};
  }

  Configuration fixed(const Json& json) const {
    const Json object = json.value("fixed", Json::object());
    if (!object.is_object())
      wrong("fixed: must be an object of options, {{\"batch-size\": 16}}, not {}", object.dump());
    Configuration fixed;
    for (const auto& [option, value] : object.items()) fixed.push_back(setting(option, value, place("fixed")));
    return fixed;
  }

  std::vector<Axis> axes(const Json& json, const StudyPlan& plan) const {
    const Json object = json.value("vary", Json::object());
    if (!object.is_object())
      wrong("vary: must be an object of lists, {{\"batch-size\": [16, 32]}}, not {}", object.dump());
    std::vector<Axis> axes;
    for (const auto& [name, values] : object.items()) axes.push_back(axis(name, values, plan));
    return axes;
  }

  Axis axis(const std::string& name, const Json& values, const StudyPlan& plan) const {
    const std::string where = place("vary." + name);
    const Json list = values.is_string() ? range(values.get<std::string>(), where, plan) : values;
    if (!list.is_array() || list.empty()) {
      bad_input("{}: must be a list of at least one value, [1, 2], or a range, \"1..cores\", not {}", where,
                list.dump());
    }
    Axis axis{.name = name, .choices = {}};
    for (std::size_t i = 0; i < list.size(); ++i) {
      Choice next = choice(name, list[i], fmt::format("{}[{}]", where, i));
      const bool is_there =
          std::ranges::any_of(axis.choices, [&](const Choice& other) { return other.value == next.value; });
      if (is_there) bad_input("{}: {} is listed twice", where, next.value.dump());
      axis.choices.push_back(std::move(next));
    }
    return axis;
  }

  Choice choice(const std::string& axis, const Json& value, const std::string& where) const {
    if (value.is_object()) return labelled_choice(value, where);
    if (value.is_array() || value.is_null()) {
      bad_input("{}: must be a value, or an object of options that go together, not {}", where, value.dump());
    }
    return {.value = value, .settings = {setting(axis, value, where)}, .is_labelled = false};
  }

  Choice labelled_choice(const Json& object, const std::string& where) const {
    Choice choice{.value = {}, .settings = {}, .is_labelled = true};
    for (const auto& [key, value] : object.items()) {
      if (key != "label") {
        choice.settings.push_back(setting(key, value, where));
      } else if (value.is_number() || (value.is_string() && !value.get<std::string>().empty())) {
        choice.value = value;
      } else {
        bad_input("{}: label: must be text or a number, not {}", where, value.dump());
      }
    }
    if (choice.value.is_null() && choice.settings.empty()) bad_input("{}: sets nothing and has no label", where);
    if (choice.value.is_null()) choice.value = to_text(choice.settings);
    return choice;
  }

  // "1..cores": the powers of two between the bounds, and the bounds themselves.
  Json range(const std::string& text, const std::string& where, const StudyPlan& plan) const {
    const std::size_t dots = text.find("..");
    if (dots == std::string::npos) {
      bad_input("{}: '{}': must be a list of values, [1, 2], or a range, \"1..cores\"", where, text);
    }
    const Formula::Lookup lookup = [&](const std::string& name) -> FormulaValue {
      if (const auto value = fact(name, plan.machine, plan.fixed)) return *value;
      bad_input("there is no '{}' here; the bounds of a range can use cores, hardware-threads and hosts", name);
    };
    const double first = Formula(text.substr(0, dots), where).number(lookup);
    const double last = Formula(text.substr(dots + 2), where).number(lookup);
    if (first != std::floor(first) || last != std::floor(last) || first < 1 || first > last || last > 1e9) {
      bad_input(
          "{}: '{}' is from {:g} to {:g}; the bounds must be whole numbers, the first at least 1 and not above the "
          "second",
          where, text, first, last);
    }
    Json values = Json::array({static_cast<std::int64_t>(first)});
    for (std::int64_t power = 1; power < static_cast<std::int64_t>(last); power *= 2) {
      if (power > static_cast<std::int64_t>(first)) values.push_back(power);
    }
    if (last > first) values.push_back(static_cast<std::int64_t>(last));
    return values;
  }

  void check_set_once(const StudyPlan& plan) const {
    std::vector<std::pair<std::string, std::string>> set_by;  // option, who
    const auto note = [&](const std::string& option, const std::string& who) {
      const auto earlier = std::ranges::find(set_by, option, &std::pair<std::string, std::string>::first);
      if (earlier == set_by.end()) return set_by.emplace_back(option, who), void();
      if (earlier->second != who)
        wrong("{} is set by {} and by {}; leave one of them out", option, earlier->second, who);
    };
    for (const Setting& setting : plan.fixed) note(setting.option, "fixed");
    for (const Axis& axis : plan.axes) {
      for (const Choice& choice : axis.choices) {
        for (const Setting& setting : choice.settings) note(setting.option, "vary." + axis.name);
      }
    }
  }

  std::vector<Formula> constraints(const Json& json) const {
    const Json list = json.value("constraints", Json::array());
    if (!list.is_array()) wrong("constraints: must be a list, [\"ps <= workers\"], not {}", list.dump());
    std::vector<Formula> constraints;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string where = place(fmt::format("constraints[{}]", i));
      if (!list[i].is_string()) bad_input("{}: must be text, \"ps <= workers\", not {}", where, list[i].dump());
      constraints.emplace_back(list[i].get<std::string>(), where);
    }
    return constraints;
  }

  const std::string& source_;
  const OptionCatalog& options_;
};

Json to_json(const Configuration& configuration) {
  Json object = Json::object();
  for (const Setting& setting : configuration) object[setting.option] = setting.value;
  return object;
}

Json to_json(const Axis& axis) {
  Json list = Json::array();
  for (const Choice& choice : axis.choices) {
    Json value = choice.value;
    if (choice.is_labelled) {
      value = Json{{"label", choice.value}};
      for (const Setting& setting : choice.settings) value[setting.option] = setting.value;
    }
    list.push_back(std::move(value));
  }
  return list;
}

// Splits at commas.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size(); begin += words.back().size() + 1) {
    words.push_back(text.substr(begin, text.find(',', begin) - begin));
  }
  return words;
}

bool has_label(const Json& choice, const std::string& label) {
  return choice.is_object() && value_text(choice.value("label", Json())) == label;
}

// The choice with this label, or the option's value.
Json chosen_value(const std::string& name, const Json& choices, const std::string& word, const OptionCatalog& options) {
  for (const Json& choice : choices.is_array() ? choices : Json::array()) {
    if (has_label(choice, word)) return choice;
  }
  if (options.find(name) != nullptr) return parse_value(*options.find(name), word, "--set");
  std::vector<std::string> labels;
  for (const Json& choice : choices.is_array() ? choices : Json::array()) {
    if (choice.is_object()) labels.push_back(value_text(choice.value("label", Json())));
  }
  bad_input("--set {}: '{}' is not one of its choices, which are {}", name, word, fmt::join(labels, ", "));
}

// That it names; 1 if none.
int number_of_hosts(const Configuration& configuration) {
  if (const Json* hosts = find(configuration, "hosts"); hosts != nullptr && hosts->is_string()) {
    return static_cast<int>(cluster::parse_hosts(hosts->get<std::string>(), "hosts").size());
  }
  if (const Json* file = find(configuration, "hostfile"); file != nullptr && file->is_string()) {
    return static_cast<int>(cluster::read_host_file(file->get<std::string>()).size());
  }
  return 1;
}

}  // namespace

StudyPlan parse_plan(const Json& json, const std::string& source, const OptionCatalog& options,
                     const StudyMachine& machine) {
  return PlanParser(source, options).parse(json, machine);
}

Json to_json(const StudyPlan& plan) {
  Json json{{"schema", kPlanSchema},
            {"name", plan.name},
            {"title", plan.title},
            {"question", plan.question},
            {"source", plan.source},
            {"figure", plan.figure.empty() ? Json(nullptr) : Json(plan.figure)},
            {"command", "bench"},
            {"fixed", to_json(plan.fixed)},
            {"vary", Json::object()},
            {"constraints", Json::array()},
            {"repeats", plan.repeats},
            {"budget", plan.budget_seconds ? Json(duration_text(*plan.budget_seconds)) : Json(nullptr)},
            {"cores", plan.machine.cores},
            {"hardware-threads", plan.machine.hardware_threads}};
  for (const Axis& axis : plan.axes) json["vary"][axis.name] = to_json(axis);
  for (const Formula& constraint : plan.constraints) json["constraints"].push_back(constraint.text());
  return json;
}

void set_option(Json& plan, const std::string& assignment, const OptionCatalog& options) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    bad_input("--set {}: must be option=value, such as --set batch-size=16", assignment);
  }
  std::string name = assignment.substr(0, equals);
  std::ranges::replace(name, '_', '-');
  const std::string text = assignment.substr(equals + 1);
  if (!plan.is_object()) return;  // reported as an error of the plan
  if (plan.contains("vary") && plan["vary"].is_object() && plan["vary"].contains(name)) {
    Json& choices = plan["vary"][name];
    Json chosen = Json::array();
    for (const std::string& word : split(text)) chosen.push_back(chosen_value(name, choices, word, options));
    choices = std::move(chosen);
    return;
  }
  const config::Option& option = options.get(name, "--set " + assignment);
  if (!plan.contains("fixed")) plan["fixed"] = Json::object();
  if (plan["fixed"].is_object()) plan["fixed"][name] = parse_value(option, text, "--set " + assignment);
}

std::optional<double> fact(const std::string& name, const StudyMachine& machine, const Configuration& configuration) {
  if (name == "cores") return machine.cores;
  if (name == "hardware-threads") return machine.hardware_threads;
  if (name == "hosts") return number_of_hosts(configuration);
  return std::nullopt;
}

FormulaValue formula_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>();
  return value_text(value);
}

Json json_value(const FormulaValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    const bool is_whole = *number == std::floor(*number) && std::abs(*number) < 1e15;
    return is_whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return std::get<std::string>(value);
}

std::optional<std::string> formula_text(const Json& value) {
  if (!value.is_string() || !value.get_ref<const std::string&>().starts_with('=')) return std::nullopt;
  return value.get<std::string>().substr(1);
}

}  // namespace trireme::lab
