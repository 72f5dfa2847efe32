// From the error codes of CUDA's libraries to Error(failed). Device code includes this, so nothing of fmt is here: nvcc
// does not take its checks of format strings for constant expressions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

void check(cudaError_t code, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

// Where a kernel is asked to work on elements of a type that it is not compiled for.
[[noreturn]] void no_kernel_for(DataType type);

}  // namespace trireme::cuda
