// The terminal that lines are drawn on and drawn over: progress of sweeps and tunes.
#pragma once

#include <cstddef>
#include <cstdio>

namespace trireme::report {

// The longest line that fits: a longer one could not be drawn over.
std::size_t columns_of(std::FILE* terminal);

}  // namespace trireme::report
