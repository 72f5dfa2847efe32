#include "trireme/report/svg_scale.hpp"

#include <fmt/format.h>

#include <cmath>

namespace trireme::report {
namespace {

constexpr int kTicks = 5;

// 1, 2 or 5 times a power of ten, near a fifth of the range.
double round_step(double range) {
  const double raw = range / kTicks, power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit <= 1.5 ? 1 : digit <= 3 ? 2 : digit <= 7 ? 5 : 10);
}

}  // namespace

SvgScale::SvgScale(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {
  if (!(high_ > low_)) high_ = low_ + (low_ == 0 ? 1 : std::fabs(low_));  // a single value has a range too
}

double SvgScale::place(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::vector<double> SvgScale::ticks() const {
  std::vector<double> ticks;
  if (!logarithmic_) {
    const double step = round_step(high_ - low_);
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ * (1 + 1e-9); ++k) ticks.push_back(k * step);
    return ticks;
  }
  const double base = high_ / low_ > 300 ? 10 : 2;
  for (double k = std::ceil(std::log(low_) / std::log(base) - 1e-9);; ++k) {
    const double value = std::pow(base, k);
    if (value > high_ * (1 + 1e-9)) return ticks;
    ticks.push_back(value);
  }
}

std::string tick_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", size < 1e-12 ? 0 : value);
}

}  // namespace trireme::report
