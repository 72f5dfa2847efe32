#include "trireme/lab/study/schedule.hpp"

#include <numeric>
#include <utility>

#include "trireme/base/random.hpp"

namespace trireme::lab {

std::vector<ScheduledRun> make_schedule(std::size_t cells, int repeats, std::uint64_t seed) {
  std::vector<ScheduledRun> schedule;
  std::vector<std::size_t> order(cells);
  for (int repeat = 1; repeat <= repeats; ++repeat) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t left = cells; left > 1;
         --left) {  // Fisher-Yates; the library's shuffle differs between implementations
      const std::size_t drawn = philox(seed, static_cast<std::uint64_t>(repeat), left)[0] % left;
      std::swap(order[left - 1], order[drawn]);
    }
    for (const std::size_t cell : order) schedule.push_back({cell, repeat});
  }
  return schedule;
}

std::vector<ScheduledRun> rotating_schedule(const std::vector<std::vector<std::size_t>>& groups, int repeats) {
  std::vector<ScheduledRun> schedule;
  for (int repeat = 1; repeat <= repeats; ++repeat) {
    for (const std::vector<std::size_t>& group : groups) {
      const std::size_t first = repeat - 1;
      for (std::size_t i = 0; i < group.size(); ++i) schedule.push_back({group[(first + i) % group.size()], repeat});
    }
  }
  return schedule;
}

}  // namespace trireme::lab
