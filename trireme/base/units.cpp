#include "trireme/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace trireme {
namespace {

std::string with_prefix(double value, const char* unit) {
  constexpr std::array<const char*, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  while (std::fabs(value) >= 999.95 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{:.{}f} {}{}", value, i == 0 ? 0 : 1, kPrefixes[i], unit);
}

}  // namespace

std::string format_bytes(double bytes) { return with_prefix(bytes, "B"); }

std::string format_flops(double flops) { return with_prefix(flops, "FLOP"); }

std::string format_count(double count) {
  std::string digits = fmt::format("{:.0f}", std::fabs(count));
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, 1, ',');
  return count < 0 ? "-" + digits : digits;
}

std::string format_seconds(double seconds) {
  const double magnitude = std::fabs(seconds);
  if (magnitude >= 1) return fmt::format("{:.2f} s", seconds);
  if (magnitude >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

}  // namespace trireme
