#include "trireme/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trireme {
namespace {

constexpr const char* kGap = "  ";

// Screen characters: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                    const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) line += kGap;
    line += columns[i].align == Align::right ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  if (columns_.empty()) throw std::invalid_argument("a table needs at least one column");
}

void TextTable::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(
        fmt::format("a row of {} cells in a table of {} columns", cells.size(), columns_.size()));
  }
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

std::string TextTable::text() const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(width_of(column.title));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }

  std::vector<std::string> dashes;
  for (const std::size_t width : widths) dashes.emplace_back(width, '-');
  const std::string rule = line_of(dashes, columns_, widths);

  std::string text;
  const bool headless = std::ranges::all_of(titles, [](const std::string& title) { return title.empty(); });
  if (!headless) text += line_of(titles, columns_, widths) + rule;
  for (const auto& row : rows_) text += row.empty() ? rule : line_of(row, columns_, widths);
  return text;
}

}  // namespace trireme
