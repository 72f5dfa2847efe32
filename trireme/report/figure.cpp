#include "trireme/report/figure.hpp"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/units.hpp"

namespace trireme::report {

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

}  // namespace trireme::report
