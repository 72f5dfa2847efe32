#include "trireme/backend/cuda/matrix_product.hpp"

#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

// Alignment of all memory in bytes; variables in a narrow type have the least.
constexpr std::uint32_t kAlignment = 16;
constexpr std::size_t kMostWorkspaceBytes = 32 << 20;

cudaDataType_t to_cuda(DataType type) {
  if (type == DataType::bf16) return CUDA_R_16BF;
  return type == DataType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

cublasLtEpilogue_t epilogue_of(const MatrixProductProblem& problem) {
  if (problem.bias) return problem.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return problem.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename Value>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)), "an attribute of a product");
}

}  // namespace

std::string to_string(const MatrixProductProblem& problem) {
  return fmt::format("{}x{}x{} | {}{}{} to {}{}{}", problem.rows, problem.columns, problem.inner,
                     problem.transpose_a ? "transposed a | " : "", problem.transpose_b ? "transposed b | " : "",
                     problem.precision == Precision::tf32 ? "tf32" : to_string(problem.type),
                     to_string(problem.dst_type), problem.bias ? " + bias" : "", problem.relu ? " + relu" : "");
}

std::string MatrixProduct::Algorithm::name() const {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{}{:x}", text.empty() ? "" : ".", word);
  return text;
}

// cuBLAS is column-major: it sees a row-major matrix as its transpose, and dstᵀ = bᵀ·aᵀ.
MatrixProduct::Matrix MatrixProduct::matrix(DataType type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, to_cuda(type), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
        "a matrix is refused");
  return Matrix(layout);
}

MatrixProduct::MatrixProduct(const MatrixProductProblem& p) : problem_(to_string(p)) {
  cublasLtMatmulDesc_t product = nullptr;
  const auto compute = p.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescCreate(&product, compute, CUDA_R_32F), "a product is refused");
  product_.reset(product);
  set(product, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  // A placeholder for the suggestions, which only depend on its alignment.
  if (p.bias) set_bias(reinterpret_cast<const void*>(std::uintptr_t{kAlignment}));
  a_ = p.transpose_a ? matrix(p.type, p.inner, p.rows) : matrix(p.type, p.rows, p.inner);
  b_ = p.transpose_b ? matrix(p.type, p.columns, p.inner) : matrix(p.type, p.inner, p.columns);
  dst_ = matrix(p.dst_type, p.rows, p.columns);
}

std::vector<MatrixProduct::Algorithm> MatrixProduct::algorithms(cublasLtHandle_t handle, int most) const {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "preferences");
  const Owner<cublasLtMatmulPreference_t> preference(made);
  const auto prefer = [made](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value)), "a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes);
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(attribute, kAlignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(most);
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, product_.get(), b_.get(), a_.get(), dst_.get(), dst_.get(),
                                     preference.get(), most, results.data(), &found);
  if (status != CUBLAS_STATUS_SUCCESS) return {};
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < found; ++i) {
    const auto& result = results[i];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back({result.algo, static_cast<std::int64_t>(result.workspaceSize)});
  }
  return algorithms;
}

void MatrixProduct::set_bias(const void* bias) { set(product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

void MatrixProduct::run(cublasLtHandle_t handle, const Algorithm& algorithm, const Memory& memory,
                        cudaStream_t stream) const {
  const float one = 1, zero = 0;
  const cublasStatus_t status = cublasLtMatmul(
      handle, product_.get(), &one, memory.b, b_.get(), memory.a, a_.get(), &zero, memory.dst, dst_.get(), memory.dst,
      dst_.get(), &algorithm.algorithm, memory.workspace, algorithm.workspace_bytes, stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(ErrorKind::failed, "cuBLAS: {}: {}", problem_, cublasLtGetStatusString(status));
}

}  // namespace trireme::cuda
