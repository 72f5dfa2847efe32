// How fast a GPU's clock runs now, which depends on its load and temperature: defined in clock.cu, used by CudaDevice.
#pragma once

#include <cuda_runtime_api.h>

namespace trireme::cuda {

// Writes cycles of a multiprocessor's clock per second to memory of the GPU, after a millisecond of counting.
void launch_count_clock(cudaStream_t stream, double* cycles_per_second);

}  // namespace trireme::cuda
