// cuBLAS's functions, looked up in its library at the first call.
#include <cublasLt.h>
#include <fmt/format.h>

#include "trireme/backend/cuda/library.hpp"

namespace {

using trireme::cuda::pass_on;

const trireme::cuda::Library& cublas_library() {
  static const trireme::cuda::Library library(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                                              fmt::format("install cuBLAS for CUDA {}", CUBLAS_VER_MAJOR));
  return library;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  return pass_on<&cublasLtCreate>(cublas_library(), "cublasLtCreate", lightHandle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  return pass_on<&cublasLtDestroy>(cublas_library(), "cublasLtDestroy", lightHandle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return pass_on<&cublasLtGetStatusString>(cublas_library(), "cublasLtGetStatusString", status);
}

size_t cublasLtGetVersion() { return pass_on<&cublasLtGetVersion>(cublas_library(), "cublasLtGetVersion"); }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t Bdesc,
                              const void* beta, const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream) {
  return pass_on<&cublasLtMatmul>(cublas_library(), "cublasLtMatmul", lightHandle, computeDesc, alpha, A, Adesc, B,
                                  Bdesc, beta, C, Cdesc, D, Ddesc, algo, workspace, workspaceSizeInBytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                              cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                              cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                              cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int* returnAlgoCount) {
  return pass_on<&cublasLtMatmulAlgoGetHeuristic>(cublas_library(), "cublasLtMatmulAlgoGetHeuristic", lightHandle,
                                                  operationDesc, Adesc, Bdesc, Cdesc, Ddesc, preference,
                                                  requestedAlgoCount, heuristicResultsArray, returnAlgoCount);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc, cublasComputeType_t computeType,
                                        cudaDataType_t scaleType) {
  return pass_on<&cublasLtMatmulDescCreate>(cublas_library(), "cublasLtMatmulDescCreate", matmulDesc, computeType,
                                            scaleType);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  return pass_on<&cublasLtMatmulDescDestroy>(cublas_library(), "cublasLtMatmulDescDestroy", matmulDesc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
                                              const void* buf, size_t sizeInBytes) {
  return pass_on<&cublasLtMatmulDescSetAttribute>(cublas_library(), "cublasLtMatmulDescSetAttribute", matmulDesc, attr,
                                                  buf, sizeInBytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref) {
  return pass_on<&cublasLtMatmulPreferenceCreate>(cublas_library(), "cublasLtMatmulPreferenceCreate", pref);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  return pass_on<&cublasLtMatmulPreferenceDestroy>(cublas_library(), "cublasLtMatmulPreferenceDestroy", pref);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void* buf,
                                                    size_t sizeInBytes) {
  return pass_on<&cublasLtMatmulPreferenceSetAttribute>(cublas_library(), "cublasLtMatmulPreferenceSetAttribute", pref,
                                                        attr, buf, sizeInBytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  return pass_on<&cublasLtMatrixLayoutCreate>(cublas_library(), "cublasLtMatrixLayoutCreate", matLayout, type, rows,
                                              cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  return pass_on<&cublasLtMatrixLayoutDestroy>(cublas_library(), "cublasLtMatrixLayoutDestroy", matLayout);
}

}  // extern "C"
