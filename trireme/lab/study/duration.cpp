#include "trireme/lab/study/duration.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

// 0: unknown unit.
double unit_seconds(char unit) { return unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0; }

}  // namespace

double parse_duration(const std::string& text, const std::string& where) {
  double seconds = 0;
  const char* place = text.data();
  const char* const end = text.data() + text.size();
  bool is_good = !text.empty();
  while (is_good && place != end) {
    double number = 0;
    const auto [after, error] = std::from_chars(place, end, number, std::chars_format::fixed);
    is_good = error == std::errc() && after != end && unit_seconds(*after) > 0 && number >= 0;
    if (!is_good) break;
    seconds += number * unit_seconds(*after);
    place = after + 1;
  }
  if (!is_good || seconds <= 0 || seconds > 1e9) {
    bad_input("{}: '{}': must be a duration with its unit, such as 45s, 20m or 1h30m", where, text);
  }
  return seconds;
}

std::string duration_text(double seconds) {
  if (seconds < 59.95) {
    const std::string text = fmt::format("{:.1f}", seconds);
    return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + "s";
  }
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  std::string text;
  if (whole >= 3600) text += fmt::format("{}h", whole / 3600);
  if (whole % 3600 >= 60) text += fmt::format("{}m", whole % 3600 / 60);
  if (whole % 60 > 0) text += fmt::format("{}s", whole % 60);
  return text;
}

std::string time_left_text(double seconds) { return duration_text(std::max(std::round(seconds), 1.0)) + " left"; }

}  // namespace trireme::lab
