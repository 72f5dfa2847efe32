// A sum or maximum over axes of a tensor, planned when a kernel is chosen: which of the kernels of
// reduction_kernels.hpp, in how many slices. Used by the factories of reductions (reduction.cpp) and of the gradient of
// a bias (bias.cpp).
#pragma once

#include <variant>
#include <vector>

#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/cuda/reduction_kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {

class Reduction {
 public:
  // Of a tensor in a simple layout. reduces: by axis. Results are dense, in the order that `results` gives the axes.
  Reduction(const TensorDesc& src, const std::vector<bool>& reduces, const Layout& results, const ReductionTypes& types,
            const CudaDevice& device);

  std::int64_t scratch_bytes() const;
  void run(cudaStream_t stream, const void* src, void* dst, void* scratch) const;

 private:
  static ColumnReduction by_columns(const Box& kept, const Box& reduced, DataType type, int multiprocessors);
  static TermReduction by_terms(const Box& kept, const Box& reduced, DataType type, int multiprocessors);
  std::int64_t slices() const;

  std::int64_t results_;
  ReductionTypes types_;
  int multiprocessors_;
  std::variant<ColumnReduction, TermReduction> kernel_;
};

}  // namespace trireme::cuda
