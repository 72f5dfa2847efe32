#include <fmt/format.h>

#include <array>

#include "trireme/report/finding_text.hpp"
#include "trireme/report/renderers.hpp"

namespace trireme::report {
namespace {

// Escapes markup characters, and newlines, which would end a row.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      result += ' ';
      continue;
    }
    if (c == '<') {
      result += "&lt;";
      continue;
    }
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// A fence longer than any in the text.
std::string fenced(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}\n{}\n{}\n", fence, text, fence);
}

std::string table_text(const FigureTable& table) {
  std::string head = "|", rule = "|", rows;
  for (const TableColumn& column : table.columns) {
    head += fmt::format(" {} |", escaped(column.title));
    rule += column.is_number ? "---:|" : "---|";
  }
  for (const auto& row : table.rows) {
    rows += '|';
    for (const TableCell& cell : row) rows += fmt::format(" {} |", escaped(cell.text));
    rows += '\n';
  }
  return head + "\n" + rule + "\n" + rows;
}

std::string mark_of(Finding::Kind kind) {
  constexpr std::array<const char*, 4> kMarks{"**shown**", "open", "measured", "**worse**"};
  return kMarks.at(static_cast<std::size_t>(kind));
}

std::string link_to(const Document& document, const std::string& id) {
  const Figure* figure = document.figure(id);
  return figure == nullptr ? "" : fmt::format(" [{}](#{})", escaped(figure->title), id);
}

std::string figure_text(const Figure& figure, bool with_drawing) {
  std::string text = fmt::format("### <a id=\"{}\"></a>{}\n\n", figure.id, escaped(figure.title));
  if (!figure.caption.empty()) text += escaped(figure.caption) + "\n\n";
  if (with_drawing) text += fmt::format("![{}]({}.svg)\n\n", escaped(figure.title), figure.id);
  text += table_text(figure.table) + "\n";
  for (const std::string& note : figure.notes) text += fmt::format("*{}*\n\n", escaped(note));
  text += fmt::format("Machine: {}\n\n", escaped(figure.machine));
  std::string commands;
  for (const FigureCommand& command : figure.commands) {
    if (!command.command.empty()) commands += (commands.empty() ? "" : "\n") + command.command;
  }
  if (!commands.empty())
    text += fmt::format("<details><summary>Commands</summary>\n\n{}\n</details>\n\n", fenced(commands));
  return text;
}

}  // namespace

std::string to_markdown(const Document& document, bool with_drawings) {
  std::string text = fmt::format("# {}\n\n", escaped(document.title));
  for (const auto& [name, value] : document.facts) text += fmt::format("- {}: {}\n", name, escaped(value));
  if (!document.warnings.empty()) text += "\n## Warnings\n\n";
  for (const std::string& warning : document.warnings) text += fmt::format("- {}\n", escaped(warning));
  if (!document.findings.empty()) text += "\n## Findings\n\n";
  for (const Finding& finding : document.findings)
    text += fmt::format("- {}: {}{}\n", mark_of(finding.kind), escaped(text_of(finding)),
                        link_to(document, finding.figure));
  if (!document.guidelines.empty()) text += "\n## Guidelines for this machine\n\n";
  for (const Guideline& guideline : document.guidelines)
    text += fmt::format("{}{}\n\n{}\n", escaped(guideline.text), link_to(document, guideline.figure),
                        fenced(guideline.command));
  for (const Section& section : document.sections) {
    text += fmt::format("\n## {}\n\n", escaped(section.title));
    if (!section.question.empty()) text += fmt::format("{}\n\n", escaped(section.question));
    if (!section.source.empty()) text += fmt::format("> {}\n\n", escaped(section.source));
    for (const Figure& figure : section.figures) text += figure_text(figure, with_drawings);
  }
  return text;
}

}  // namespace trireme::report
