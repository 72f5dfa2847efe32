#include "trireme/report/figure.hpp"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/units.hpp"
#include "trireme/report/renderers.hpp"

namespace trireme::report {
namespace {

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

}  // namespace

std::string number_text(double value) {
  const double size = std::fabs(value);
  if (size >= 10000) return format_count(std::round(value));
  if (size >= 1000 || value == std::round(value)) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

TableCell number_cell(double value) { return {number_text(value), value}; }

TableCell number_cell(std::optional<double> value) { return value ? number_cell(*value) : TableCell{}; }

std::string to_csv(const FigureTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) text += ',';
    text += quoted_cell(table.columns[i].title);
  }
  text += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += row[i].number ? fmt::format("{}", *row[i].number) : quoted_cell(row[i].text);
    }
    text += '\n';
  }
  return text;
}

}  // namespace trireme::report
