#include "cli/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/option_catalog.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kConfig = "--config";
constexpr const char* kAbout = "about";  // for people

// Removes it from the words before "--"; nothing: not given, or without a file, which the parser reports.
std::optional<std::string> take_config(Words& words) {
  std::optional<std::string> file;
  for (std::size_t i = 1; i < words.size() && words[i] != "--";) {
    const bool is_alone = words[i] == kConfig;
    const bool is_joined = words[i].starts_with(std::string(kConfig) + "=");
    if ((!is_alone && !is_joined) || (is_alone && i + 1 == words.size())) {
      ++i;
      continue;
    }
    if (file) bad_input("--config was given twice; put the options into one file");
    file = is_alone ? words[i + 1] : words[i].substr(words[i].find('=') + 1);
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(first, first + (is_alone ? 2 : 1));
  }
  return file;
}

Json read_config(const std::string& path) {
  Json config = read_json(path);
  if (!config.is_object()) bad_input("{}: must be an object of options: {{\"batch-size\": 16, ...}}", path);
  return config;
}

// One command of the line with its words.
class CommandPart {
 public:
  CommandPart(const CLI::App* command, Words words) : command_(command), words_(std::move(words)) {}

  const std::string& name() const { return words_.front(); }
  const CLI::Option* find(const std::string& name) const {
    if (command_ == nullptr) return nullptr;
    const auto options = command_->get_options([&](const CLI::Option* option) {
      return is_for_users(*option) && option->get_lnames().front() == name && name != "config" && name != "help";
    });
    return options.empty() ? nullptr : options.front();
  }
  bool gives(const CLI::Option& option) const {
    return std::ranges::any_of(words_, [&](std::string word) {
      word = word.substr(0, word.find('='));
      std::ranges::replace(word, '_', '-');
      const auto& names = option.get_lnames();
      return std::ranges::any_of(names, [&](const std::string& name) { return word == "--" + name; });
    });
  }
  void add(const Words& words) { added_.insert(added_.end(), words.begin(), words.end()); }
  // The name first, then added words, then the user's.
  void append_to(Words& line) const {
    if (words_.empty()) return;
    line.push_back(words_.front());
    line.insert(line.end(), added_.begin(), added_.end());
    line.insert(line.end(), words_.begin() + 1, words_.end());
  }
  void append_names(Words& names) const {
    if (command_ == nullptr) return;
    for (const CLI::Option* option : command_->get_options()) {
      if (is_for_users(*option) && find(option->get_lnames().front()) != nullptr) {
        names.push_back(option->get_lnames().front());
      }
    }
  }

 private:
  const CLI::App* command_;  // null: not one of our commands
  Words words_;              // its name first; empty: no such part
  Words added_;
};

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// The command line split into the parts that options may go to: the command and, for a launch, the launched command.
class ConfiguredLine {
 public:
  ConfiguredLine(const Words& words, const CLI::App& app, bool is_launched)
      : own_(nullptr, {}), launched_(nullptr, {}), is_launched_(is_launched) {
    const auto end = std::ranges::find(words, "--");
    own_ = CommandPart(command_named(app, words.front()), {words.begin(), end});
    has_rest_ = end != words.end();
    const Words rest = has_rest_ ? Words(end + 1, words.end()) : Words{};
    const bool is_known = words.front() == "launch" && !rest.empty();
    lacks_command_ = words.front() == "launch" && rest.empty();
    launched_ = CommandPart(is_known ? command_named(app, rest.front()) : nullptr, rest);
  }

  void set(const std::string& file, const std::string& key, const Json& value);
  Words words() const {
    Words line;
    own_.append_to(line);
    if (has_rest_) line.emplace_back("--");
    launched_.append_to(line);
    return line;
  }

 private:
  [[noreturn]] void refuse(const std::string& file, const std::string& key) const;

  CommandPart own_, launched_;
  bool is_launched_ = false, has_rest_ = false;
  bool lacks_command_ = false;  // a launch of nothing, which is reported to the user
};

void ConfiguredLine::set(const std::string& file, const std::string& key, const Json& value) {
  std::string name = key;
  std::ranges::replace(name, '_', '-');
  CommandPart& part = own_.find(name) != nullptr ? own_ : launched_;
  const CLI::Option* option = part.find(name);
  if (option == nullptr && config::launch_table().find(name) != nullptr) {
    if (is_launched_ || config::is_alone(*config::find_option(name), value)) return;
    bad_input("{}: {} is {}, which `{}` alone cannot do: trireme launch --config {} -- {}", file, key, value.dump(),
              own_.name(), file, own_.name());
  }
  if (option == nullptr && lacks_command_) return;
  if (option == nullptr) refuse(file, key);
  config::check(*config::find_option(name), value, file);
  if (!part.gives(*option)) part.add(config::words_of(name, value));
}

void ConfiguredLine::refuse(const std::string& file, const std::string& key) const {
  Words allowed;
  own_.append_names(allowed);
  launched_.append_names(allowed);
  bad_input("{}: there is no option '{}'{} Allowed are {}", file, key, suggestion(key, allowed),
            fmt::join(allowed, ", "));
}

}  // namespace

void add_config_option(CLI::App& command) {
  command.add_option_function<std::string>(
      kConfig, [](const std::string&) {},
      "Options from a JSON file, as `trireme tune` writes it: {\"batch-size\": 16, ...}; those given here win");
}

Words with_config(Words words, const CLI::App& app, bool is_launched) {
  if (words.empty()) return words;
  const CLI::App* command = command_named(app, words.front());
  if (command == nullptr || command->get_option_no_throw(kConfig) == nullptr) return words;
  const auto file = take_config(words);
  if (!file) return words;
  ConfiguredLine line(words, app, is_launched);
  const Json config = read_config(*file);
  for (const auto& [key, value] : config.items()) {
    if (key != kAbout) line.set(*file, key, value);
  }
  return line.words();
}

}  // namespace trireme::cli
