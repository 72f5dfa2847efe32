// What this machine's cores can do at most, measured in a fraction of a second: the yardstick of utilisation.
#pragma once

#include <string>

#include "trireme/base/shape.hpp"

namespace trireme::perf {

struct Peak {
  double flops_per_second = 0;    // fused multiply-add on the given threads
  DataType type = DataType::f32;  // of the factors; sums are f32
  std::string instruction_set;    // the widest that was used: avx512, avx2+fma, sse2, avx512_bf16, amx_bf16
  int threads = 0;
  double bytes_per_second = 0;  // copied; measured on GPUs alone
};

// Best of several short runs, on threads bound as apply() has left them; threads.hpp says which team sizes keep them.
// Of bf16 if the CPU has instructions for it, in matrix units (AMX) if the system lets the process use them, otherwise
// in vectors; of f32 if there are none.
Peak measure_fma_peak(int threads, DataType type = DataType::f32, double seconds = 0.2);

// Bytes per second over several passes. Another program can only make a pass slower, so the fastest one counts; how far
// the others stay behind says whether the machine was quiet.
struct PassRates {
  double best = 0, median = 0, worst = 0;
  int passes = 0;
};

struct Bandwidth {
  PassRates copy;  // bytes read plus bytes written, arrays beyond the last cache
  PassRates read;
  int threads = 0;
};
Bandwidth measure_memory_bandwidth(int threads, double seconds = 1);

}  // namespace trireme::perf
