// From the error codes of CUDA's libraries to Error(failed).
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "trireme/base/error.hpp"

namespace trireme::cuda {

inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fail(ErrorKind::failed, "CUDA: {}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

inline void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuDNN: {}: {}", what, cudnnGetErrorString(status));
}

inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuBLAS: {}: {}", what, cublasLtGetStatusString(status));
}

}  // namespace trireme::cuda
