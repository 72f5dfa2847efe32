#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/clock_kernels.hpp"

namespace trireme::cuda {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void count_clock(double* cycles_per_second) {
  constexpr unsigned long long kDuration = 1000000;
  const unsigned long long start = nanoseconds();
  unsigned long long begin = start;
  while (begin == start) begin = nanoseconds();  // the timer moves in steps: wait for the next one
  const long long first = clock64();
  unsigned long long end = begin;
  while (end - begin < kDuration) end = nanoseconds();
  *cycles_per_second = static_cast<double>(clock64() - first) * 1e9 / static_cast<double>(end - begin);
}

}  // namespace

void launch_count_clock(cudaStream_t stream, double* cycles_per_second) {
  count_clock<<<1, 1, 0, stream>>>(cycles_per_second);
  check(cudaGetLastError(), "counting the clock");
}

}  // namespace trireme::cuda
