// Numbers for people. GB = 1e9 bytes everywhere.
#pragma once

#include <concepts>
#include <string>

namespace trireme {

std::string format_bytes(double bytes);      // "102.2 MB"
std::string format_count(double count);      // "25,559,081"
std::string format_flops(double flops);      // "7.7 GFLOP"
std::string format_seconds(double seconds);  // "1.23 s", "4.5 ms"

template <std::integral Count>
std::string format_bytes(Count bytes) {
  return format_bytes(static_cast<double>(bytes));
}
template <std::integral Count>
std::string format_count(Count count) {
  return format_count(static_cast<double>(count));
}

}  // namespace trireme
