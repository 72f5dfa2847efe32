#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/perf/build_info.hpp"

namespace trireme::cli {
namespace {

constexpr std::size_t kUsualWidth = 100;                   // for a file or pipe
constexpr std::size_t kLeastWidth = 60, kMostWidth = 120;  // longer lines are hard to read
constexpr std::size_t kMargin = 2, kMostNameWidth = 28;    // longer names get their own line

// COLUMNS if exported, else the terminal's width, else the default.
std::size_t help_width() {
  std::size_t width = 0;
  if (const char* told = std::getenv("COLUMNS")) std::from_chars(told, told + std::strlen(told), width);
  winsize size{};
  if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width == 0 ? kUsualWidth : std::clamp(width, kLeastWidth, kMostWidth);
}

// Fills lines up to the width and indents all but the first.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent, std::size_t column) {
  std::istringstream words(text);
  std::string word, lines;
  while (words >> word) {
    const bool is_first = lines.empty();
    if (!is_first && column + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

// An option, an argument or a command, and what it does.
struct Entry {
  std::string name, text;
};

struct Section {
  std::string title;
  std::vector<Entry> entries;
};

std::string to_text(const std::vector<Entry>& entries, std::size_t width) {
  std::size_t name_width = 0;
  for (const Entry& entry : entries) {
    if (entry.name.size() <= kMostNameWidth) name_width = std::max(name_width, entry.name.size());
  }
  const std::size_t indent = kMargin + name_width + 2;
  std::string text;
  for (const Entry& entry : entries) {
    text += std::string(kMargin, ' ') + entry.name;
    if (entry.name.size() > name_width) {
      text += "\n" + std::string(indent, ' ');
    } else {
      text += std::string(indent - kMargin - entry.name.size(), ' ');
    }
    text += wrapped(entry.text, width, indent, indent);
  }
  return text;
}

std::string value_label(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name().substr(0, option.get_type_name().find(':'));
  const std::string label = type == "INT" || type == "UINT" ? "N" : type == "FLOAT" ? "NUMBER" : type;
  return " " + label + (option.get_expected_max() == CLI::detail::expected_max_vector_size ? " ..." : "");
}

std::string option_label(const CLI::Option& option) {
  if (option.get_positional()) return display_name(option);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}{}", fmt::join(names, ", "), value_label(option));
}

// Sorts the names: the set is ordered by address, which changes from run to run.
std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(display_name(*option));
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string option_text(const CLI::Option& option) {
  std::vector<std::string> facts;
  if (option.get_required()) facts.emplace_back("required");
  if (!option.get_default_str().empty()) facts.push_back("default: " + option.get_default_str());
  if (!option.get_needs().empty()) facts.push_back("with " + names_of(option.get_needs()));
  if (!option.get_excludes().empty()) facts.push_back("not with " + names_of(option.get_excludes()));
  if (!option.get_envname().empty()) facts.push_back("or the variable " + option.get_envname());
  return option.get_description() + (facts.empty() ? "" : fmt::format(" ({})", fmt::join(facts, "; ")));
}

std::vector<Entry> options_of(const CLI::App& app, bool positional, const std::string& group) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() != positional || option->get_group() != group) continue;
    entries.push_back({option_label(*option), option_text(*option)});
  }
  return entries;
}

// The first sentence, without its example.
std::string in_short(const std::string& description) {
  std::string text = description;
  std::ranges::replace(text, '\n', ' ');
  for (const char* end : {". ", ", as in: "}) text = text.substr(0, text.find(end));
  return text;
}

std::vector<Entry> commands_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!is_hidden(*command)) entries.push_back({command->get_name(), in_short(command->get_description())});
  }
  return entries;
}

// "trireme bench [OPTIONS]"
std::string usage(const CLI::App& app) {
  std::string text = fmt::format("{} [OPTIONS]", command_path(app));
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const bool is_list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const std::string name = display_name(*option) + (is_list ? "..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text + (commands_of(app).empty() ? "" : " COMMAND");
}

std::vector<Section> sections_of(const CLI::App& app) {
  std::vector<Section> sections{{"Commands", commands_of(app)}, {"Arguments", options_of(app, true, "Options")}};
  for (const std::string& group : app.get_groups()) {
    if (!group.empty()) sections.push_back({group, options_of(app, false, group)});
  }
  std::erase_if(sections, [](const Section& section) { return section.entries.empty(); });
  return sections;
}

// Manual pages, made of what --help says.
std::string page_name(const CLI::App& command) {
  std::string name = command_path(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

// For roff, a dash is a hyphen unless it is escaped, and a dot or an apostrophe begins a command.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// In roff.
std::string man_page(const CLI::App& command) {
  const std::string name = page_name(command);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"Trireme {}\" \"Trireme\"\n", escaped(upper(name)), perf::build_info().version);
  std::string description = command.get_description();
  std::ranges::replace(description, '\n', ' ');
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(description));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", escaped(usage(command)));
  for (const Section& section : sections_of(command)) {
    text += fmt::format(".SH {}\n", upper(section.title));
    const bool is_commands = section.title == "Commands";
    for (const Entry& entry : section.entries) {
      const std::string title = is_commands ? name + "-" + entry.name + "(1)" : entry.name;
      text += fmt::format(".TP\n.B {}\n{}\n", escaped(title), escaped(entry.text));
    }
  }
  if (command.get_parent() != nullptr)
    text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", escaped(page_name(*command.get_parent())));
  return text;
}

// trireme.1, trireme-bench.1 and so on. Error(failed) if the directory cannot be written.
void write_man_pages(const CLI::App& program, const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);  // else writing names the path
  write_text(man_page(program), directory / (page_name(program) + ".1"));
  for (const CLI::App* below : program.get_subcommands(nullptr)) {
    if (!is_hidden(*below)) write_man_pages(*below, directory);
  }
}

}  // namespace

bool is_hidden(const CLI::App& command) { return command.get_group().empty(); }

std::string command_path(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : command_path(*app.get_parent()) + " " + app.get_name();
}

std::string display_name(const CLI::Option& option) {
  return option.get_positional() ? upper(option.get_name()) : option.get_name();
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const {
  const std::size_t width = help_width();
  std::string text = wrapped(app->get_description(), width, 0, 0) + "\nUsage: " + usage(*app) + "\n";
  for (const Section& section : sections_of(*app))
    text += "\n" + section.title + ":\n" + to_text(section.entries, width);
  if (!commands_of(*app).empty())
    text += fmt::format("\nRun {} COMMAND --help for the options of a command.\n", command_path(*app));
  return text;
}

std::string help_text(const CLI::App& app) {
  return app.get_formatter()->make_help(&app, "", CLI::AppFormatMode::Normal);
}

Command add_help(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("help", "Show how to use a command, as in: trireme help bench");
  struct Options {
    std::vector<std::string> words;
    bool man = false;
    std::string man_pages;
  };
  auto options = std::make_shared<Options>();
  app->add_option("command", options->words, "Command (default: list all commands)");
  app->add_flag("--man", options->man, "Print the manual page, as in: trireme help bench --man | man -l -");
  app->add_option("--man-pages", options->man_pages, "Write the manual pages of all commands into this directory");
  return {app, [&parent, options] {
            if (!options->man_pages.empty()) {
              write_man_pages(parent, options->man_pages);
              return 0;
            }
            const CLI::App* command = &parent;
            for (const std::string& word : options->words) {
              const auto found = command->get_subcommands(
                  [&](const CLI::App* each) { return each->get_name() == word && !is_hidden(*each); });
              if (found.empty()) bad_input("{}", unknown_command(*command, word));
              command = found.front();
            }
            fmt::print("{}", options->man ? man_page(*command) : help_text(*command));
            return 0;
          }};
}

}  // namespace trireme::cli
