// The order of a study's runs: all cells once, then all again, so that slow changes of the machine (temperature, other
// users) affect all alike. The seed shuffles each round, so that no cell always follows the same other.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme::lab {

struct ScheduledRun {
  std::size_t cell = 0;
  int repeat = 1;  // the round, from 1
  bool operator==(const ScheduledRun&) const = default;
};

std::vector<ScheduledRun> make_schedule(std::size_t cells, int repeats, std::uint64_t seed = 1);

// For cells that are compared: those of a group run back to back, and each round starts with another one.
std::vector<ScheduledRun> rotating_schedule(const std::vector<std::vector<std::size_t>>& groups, int repeats);

}  // namespace trireme::lab
