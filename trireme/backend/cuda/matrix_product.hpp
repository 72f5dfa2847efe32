// Products of row-major matrices by cuBLAS, with the algorithms that it suggests. Used by linear.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/backend/cuda/library.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::cuda {

// dst (rows x columns) = ReLU?(a·b + bias of the column). In memory a is rows x inner, or inner x rows if transposed; b
// is inner x columns, or columns x inner if transposed. bias has dst's type.
struct MatrixProductProblem {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  DataType type = DataType::f32;  // of a and b
  DataType dst_type = DataType::f32;
  Precision precision = Precision::fp32;
  bool bias = false, relu = false;
};
std::string to_string(const MatrixProductProblem& problem);

class MatrixProduct {
 public:
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm{};
    std::int64_t workspace_bytes = 0;
    std::string name() const;  // stable within one version of cuBLAS
  };
  struct Memory {
    const void* a = nullptr;
    const void* b = nullptr;
    void* dst = nullptr;
    void* workspace = nullptr;
  };

  explicit MatrixProduct(const MatrixProductProblem& problem);

  // cuBLAS's suggestions, best first; none if it has no algorithm.
  std::vector<Algorithm> algorithms(cublasLtHandle_t handle, int most) const;
  void set_bias(const void* bias);
  void run(cublasLtHandle_t handle, const Algorithm& algorithm, const Memory& memory, cudaStream_t stream) const;

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t product) const { cublasLtMatmulDescDestroy(product); }
    void operator()(cublasLtMatrixLayout_t matrix) const { cublasLtMatrixLayoutDestroy(matrix); }
    void operator()(cublasLtMatmulPreference_t preference) const { cublasLtMatmulPreferenceDestroy(preference); }
  };
  template <typename Handle>
  using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
  using Matrix = Owner<cublasLtMatrixLayout_t>;
  static Matrix matrix(DataType type, std::int64_t rows, std::int64_t columns);

  std::string problem_;  // as text
  Owner<cublasLtMatmulDesc_t> product_;
  Matrix a_, b_, dst_;
};

}  // namespace trireme::cuda
