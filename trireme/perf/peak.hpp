// What this machine's cores can do at most, measured in a fraction of a second: the yardstick of utilisation.
#pragma once

#include <string>

#include "trireme/base/shape.hpp"

namespace trireme::perf {

struct Peak {
  double flops_per_second = 0;    // fused multiply-add on the given threads
  DataType type = DataType::f32;  // of the factors; sums are f32
  std::string instruction_set;    // the widest that was used: avx512, avx2+fma, sse2, avx512_bf16
  int threads = 0;
  double bytes_per_second = 0;  // copied; measured on GPUs alone
};

// Best of several short runs, on threads bound as apply() has left them; threads.hpp says which team sizes keep them.
// Of bf16 where the CPU multiplies it with vector instructions (matrix units, which are faster still, are not
// measured), else of f32.
Peak measure_fma_peak(int threads, DataType type = DataType::f32, double seconds = 0.2);

struct Bandwidth {
  double copy_bytes_per_second = 0;  // bytes read plus bytes written, arrays beyond the last cache
  double read_bytes_per_second = 0;
  int threads = 0;
};
Bandwidth measure_memory_bandwidth(int threads, double seconds = 0.3);

}  // namespace trireme::perf
