// Counts what this program allocates, whoever asks: the C functions are replaced by ones that count and go on to the C
// library's. What oneDNN and OpenMP allocate inside calls of their own is counted apart: the one makes a table of
// arguments for every primitive that it executes and buffers for its matrix multiplication, the other a record for
// every team of one thread, and neither offers a way around.
#pragma once

#include <cstdint>

namespace trireme::testkit {

struct Allocations {
  std::int64_t ours = 0;
  std::int64_t of_libraries = 0;
};

void start_counting();
Allocations stop_counting();

}  // namespace trireme::testkit
