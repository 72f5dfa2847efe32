// The order in which the runs of a study are made: all cells once, then all again. What changes slowly on a machine,
// its temperature or another user, then hits all cells alike. Within a round the order is shuffled by the seed, so that
// no cell always comes after the same other.
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

// For cells that are compared with each other: those of a group come one after the other, and in every round another
// one comes first.
std::vector<ScheduledRun> rotating_schedule(const std::vector<std::vector<std::size_t>>& groups, int repeats);

}  // namespace trireme::lab
