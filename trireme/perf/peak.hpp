// The peak speed of this machine's cores, measured in a fraction of a second: the reference for utilization.
#pragma once

#include <string>

#include "trireme/base/shape.hpp"

namespace trireme::perf {

struct Peak {
  double flops_per_second = 0;    // fused multiply-add on the given threads
  DataType type = DataType::f32;  // of the factors; sums are f32
  std::string instruction_set;    // widest one used: avx512, avx2+fma, sse2, avx512_bf16, amx_bf16
  int threads = 0;
  double bytes_per_second = 0;  // copied; measured only on GPUs
};

// Best of several short runs, on threads pinned by apply(); threads.hpp says which team sizes keep them. bf16 uses
// matrix units (AMX) if the process may, else vector instructions, else falls back to f32.
Peak measure_fma_peak(int threads, DataType type = DataType::f32, double seconds = 0.2);

// Bytes per second of passes. Others can only slow a pass down, so the fastest counts; the spread shows disturbance.
struct PassRates {
  double best = 0, median = 0, worst = 0;
  int passes = 0;
};

struct Bandwidth {
  PassRates copy;  // bytes read plus written, arrays larger than the last cache
  PassRates read;
  int threads = 0;
};
Bandwidth measure_memory_bandwidth(int threads, double seconds = 1);

}  // namespace trireme::perf
