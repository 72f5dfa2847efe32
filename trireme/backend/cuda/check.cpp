#include "trireme/backend/cuda/check.hpp"

#include "trireme/backend/cuda/library.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fail(ErrorKind::failed, "CUDA: {}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuDNN: {}: {}", what, cudnnGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuBLAS: {}: {}", what, cublasLtGetStatusString(status));
}

void no_kernel_for(DataType type) {
  fail(ErrorKind::failed, "the cuda backend has no kernel for elements of {}", to_string(type));
}

}  // namespace trireme::cuda
