#include "cli/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/help.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/perf/build_info.hpp"

namespace trireme::cli {
namespace {

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

}  // namespace

std::string man_page(const CLI::App& command) {
  const std::string name = page_name(command);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"Trireme {}\" \"Trireme\"\n", escaped(upper(name)), perf::build_info().version);
  std::string description = command.get_description();
  std::ranges::replace(description, '\n', ' ');
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(description));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", escaped(usage(command)));
  for (const HelpSection& section : help_sections(command)) {
    text += fmt::format(".SH {}\n", upper(section.title));
    const bool is_commands = section.title == "Commands";
    for (const HelpEntry& entry : section.entries) {
      const std::string title = is_commands ? name + "-" + entry.name + "(1)" : entry.name;
      text += fmt::format(".TP\n.B {}\n{}\n", escaped(title), escaped(entry.text));
    }
  }
  if (command.get_parent() != nullptr)
    text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", escaped(page_name(*command.get_parent())));
  return text;
}

void write_man_pages(const CLI::App& program, const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);  // else writing names the path
  write_text(man_page(program), directory / (page_name(program) + ".1"));
  for (const CLI::App* below : program.get_subcommands(nullptr)) {
    if (!is_hidden(*below)) write_man_pages(*below, directory);
  }
}

}  // namespace trireme::cli
