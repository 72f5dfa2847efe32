// Measures a GPU's current clock, which depends on load and temperature. Defined in clock.cu, used by CudaDevice.
#pragma once

#include <cuda_runtime_api.h>

namespace trireme::cuda {

// Counts for a millisecond, then writes a multiprocessor's cycles per second to the GPU's memory.
void launch_count_clock(cudaStream_t stream, double* cycles_per_second);

}  // namespace trireme::cuda
