// Turns CUDA libraries' errors into Error(failed). Device code includes this: no fmt, nvcc rejects its format checks.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

void check(cudaError_t code, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

// Error(failed): a kernel is not compiled for this element type.
[[noreturn]] void no_kernel_for(DataType type);

}  // namespace trireme::cuda
