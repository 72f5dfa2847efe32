
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "cli/help.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/models/model.hpp"

namespace trireme::cli {
namespace {

using Names = std::vector<std::string>;

// The chosen command; `data make` is nested.
const CLI::App& chosen_command(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  return *deepest;
}

const CLI::App& program_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? command : program_of(*command.get_parent());
}

// With dashes, as users type them.
Names option_names(const CLI::App& command) {
  Names names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool has_option(const CLI::App& command, const std::string& name) {
  const Names names = option_names(command);
  return std::ranges::find(names, name) != names.end();
}

// Other commands, including nested ones, that have this option.
void append_owners(const CLI::App& command, const CLI::App& except, const std::string& option, Names& owners) {
  if (&command != &except && !is_hidden(command) && has_option(command, option))
    owners.push_back(command_path(command));
  for (const CLI::App* below : command.get_subcommands(nullptr)) append_owners(*below, except, option, owners);
}

std::string unknown_option(const CLI::App& command, const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  if (command.get_name() == "launch" && command.get_option("command")->count() > 0) {
    return fmt::format(
        "unknown option '{}' of launch; options of the launched command go after --, as in: trireme launch --workers 2 "
        "-- bench --model resnet50",
        name);
  }
  const std::string meant = nearest_name(name, option_names(command));
  Names owners;
  append_owners(program_of(command), command, name, owners);
  const bool is_of_launch = std::ranges::find(owners, "trireme launch") != owners.end();
  if (meant.empty() && is_of_launch && has_option(command, "--worker-hosts")) {  // this command can be launched
    return fmt::format("unknown option '{}'; it belongs to launch, as in: trireme launch --workers 2 -- {}", name,
                       command.get_name());
  }
  if (owners.empty() || !meant.empty())
    return fmt::format("unknown option '{}'{}", name, suggestion(name, option_names(command)));
  return fmt::format(
      "unknown option '{}'; {} it", name,
      owners.size() == 1 ? fmt::format("{} has", owners.front()) : fmt::format("{} have", fmt::join(owners, ", ")));
}

std::string unknown_argument(const CLI::App& command, const std::string& given) {
  const auto& models = model_list();
  const bool is_model = std::ranges::any_of(models, [&](const Network& each) { return each.name == given; });
  if (is_model && has_option(command, "--model")) {
    return fmt::format("unknown argument '{0}'; did you mean '--model {0}'?", given);
  }
  const auto arguments = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return fmt::format("unknown argument '{}'; {} takes {}", given, command_path(command),
                     arguments.empty() ? "options only" : fmt::format("one {}", display_name(*arguments.front())));
}

// The options that a message names, in that order.
std::vector<const CLI::Option*> options_named(const CLI::App& command, const std::string& message) {
  std::vector<std::pair<std::size_t, const CLI::Option*>> found;
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (name.empty()) continue;  // hidden
    for (std::size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at > 0 && is_part(message[at - 1])) || (end < message.size() && is_part(message[end]))) continue;
      found.emplace_back(at, option);
      break;
    }
  }
  std::ranges::sort(found);
  std::vector<const CLI::Option*> options;
  for (const auto& [at, option] : found) options.push_back(option);
  return options;
}

std::string value_of(const CLI::Option& option) { return fmt::format("{}", fmt::join(option.results(), ",")); }

// "--batch-size 1.5", or the environment variable that gave the value.
std::string given_text(const CLI::Option& option) {
  const std::string value = value_of(option);
  const char* variable = option.get_envname().empty() ? nullptr : std::getenv(option.get_envname().c_str());
  if (variable != nullptr && value == variable) return fmt::format("{}={}", option.get_envname(), value);
  return fmt::format("{} {}", display_name(option), value);
}

// Empty: any text.
std::string kind_text(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "true or false";
  const std::string type = option.get_type_name();
  if (type.starts_with("UINT")) return "a whole number, 0 or more";
  if (type.starts_with("INT")) return "a whole number";
  return type.starts_with("FLOAT") ? "a number" : "";
}

bool is_digits(std::string text) {
  if (text.starts_with('-')) text.erase(0, 1);
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string not_converted(const CLI::Option& option) {
  return fmt::format("{}: {}must be {}", given_text(option), option.results().size() > 1 ? "each " : "",
                     kind_text(option));
}

std::string wrong_count(const CLI::Option& option) {
  const std::size_t count = option.results().size();
  if (count > 1) {
    return fmt::format("{} is given {}: {}", display_name(option),
                       count == 2 ? "twice" : fmt::format("{} times", count), fmt::join(option.results(), " and "));
  }
  const std::string kind = kind_text(option);
  return fmt::format("{} has no value; {}", display_name(option), kind.empty() ? "give one" : "it must be " + kind);
}

std::string missing(const CLI::Option& option) {
  std::string description = option.get_description();
  std::ranges::replace(description, '\n', ' ');
  if (!description.empty()) description.front() = static_cast<char>(std::tolower(description.front()));
  return fmt::format("{} is missing: {}", display_name(option), description);
}

// The validator already says what is allowed.
std::string refused_value(const CLI::Option& option, const std::string& message) {
  const std::string prefix = option.get_name() + ": ";
  return fmt::format("{}: {}", given_text(option),
                     message.starts_with(prefix) ? message.substr(prefix.size()) : message);
}

template <typename Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

std::string explain_option(const CLI::ParseError& error, const std::vector<const CLI::Option*>& named) {
  const CLI::Option& first = *named.front();
  if (is<CLI::ConversionError>(error)) return not_converted(first);
  if (is<CLI::ArgumentMismatch>(error)) return wrong_count(first);
  if (is<CLI::RequiredError>(error)) return missing(first);
  if (is<CLI::ValidationError>(error)) return refused_value(first, error.what());
  if (named.size() < 2) return error.what();
  const std::string one = display_name(first), other = display_name(*named[1]);
  if (is<CLI::RequiresError>(error)) return fmt::format("{} has no effect without {}", one, other);
  if (is<CLI::ExcludesError>(error)) {
    return fmt::format("{} and {} cannot be used together; leave one of them out", one, other);
  }
  return error.what();
}

// A word taken for a value by mistake; empty: none.
std::string misread_value(const CLI::App& command, const CLI::Option& option) {
  if (option.get_positional() || option.get_items_expected_max() == 0) return "";
  for (const std::string& value : option.results()) {
    if (value.empty()) return fmt::format("{} is empty; give a value, or leave it out", display_name(option));
    if (has_option(command, value.substr(0, value.find('=')))) {
      return fmt::format("{} has no value: it is followed by {}", display_name(option), value);
    }
    const bool is_whole = option.get_type_name().find("INT") != std::string::npos && is_digits(value);
    const bool is_octal = is_whole && value.size() > 1 && value.front() == '0';
    if (is_octal) return fmt::format("{}: must be {}, without a 0 in front", given_text(option), kind_text(option));
    if (is_whole && value.size() > std::numeric_limits<std::int64_t>::digits10) {
      return fmt::format("{}: the number is too large", given_text(option));
    }
  }
  return "";
}

std::string misread_value(const CLI::App& command) {
  if (is_hidden(command)) return "";  // written by a launch
  for (const CLI::Option* option : command.get_options()) {
    if (std::string problem = misread_value(command, *option); !problem.empty()) return problem;
  }
  return "";
}

std::string problem_of(const CLI::App& command, const CLI::ParseError& error) {
  if (std::string problem = misread_value(command); !problem.empty()) return problem;
  // What seems missing may just be misspelled.
  const Names unknown = command.remaining();
  if ((is<CLI::ExtrasError>(error) || is<CLI::RequiredError>(error)) && !unknown.empty()) {
    const std::string& first = unknown.front();
    if (first.size() > 1 && first.starts_with('-')) return unknown_option(command, first);
    return command.get_subcommands(nullptr).empty() ? unknown_argument(command, first)
                                                    : unknown_command(command, first);
  }
  const auto named = options_named(command, error.what());
  return named.empty() ? error.what() : explain_option(error, named);
}

// After a question or full stop, a new sentence begins.
std::string with_help(const CLI::App& command, const std::string& problem) {
  const bool is_sentence = problem.ends_with('.') || problem.ends_with('?');
  return fmt::format("{}{} {} --help", problem, is_sentence ? " See" : "; see", command_path(command));
}

}  // namespace

std::string unknown_command(const CLI::App& app, const std::string& given) {
  Names names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!is_hidden(*command)) names.push_back(command->get_name());
  }
  const std::string below = app.get_parent() == nullptr ? "" : " of " + app.get_name();
  return fmt::format("unknown command '{}'{}{} The commands are {}", given, below, suggestion(given, names),
                     fmt::join(names, ", "));
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen_command(app);
  return with_help(command, problem_of(command, error));
}

void check_words(const CLI::App& app, const std::vector<std::string>& words) {
  const auto hidden = app.get_subcommands(
      [&](const CLI::App* each) { return is_hidden(*each) && !words.empty() && each->get_name() == words.front(); });
  if (!hidden.empty()) return;  // written by a launch
  for (const std::string& word : words) {
    if (word == "--") return;
    const bool lacks_value = word.starts_with("--") && word.find('=') + 1 == word.size();
    if (lacks_value) bad_input("{} has no value; give one, or leave it out", word);
  }
}

void check_values(const CLI::App& app) {
  const CLI::App& command = chosen_command(app);
  if (const std::string problem = misread_value(command); !problem.empty())
    bad_input("{}", with_help(command, problem));
}

}  // namespace trireme::cli
