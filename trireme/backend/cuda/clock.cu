// Measures a GPU's current clock, which depends on load and temperature.
#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/cuda/library.hpp"

namespace trireme::cuda {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// Counts for a millisecond, then writes a multiprocessor's cycles per second.
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

double CudaDevice::clock_hertz() {
  const DeviceMemory counted = allocate(sizeof(double), "counting the clock");
  count_clock<<<1, 1, 0, stream()>>>(static_cast<double*>(counted.at(0)));
  check(cudaGetLastError(), "counting the clock");
  double hertz = 0;
  download(&hertz, counted.at(0), sizeof(hertz));
  synchronize();
  return hertz;
}

}  // namespace trireme::cuda
