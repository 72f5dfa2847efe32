// Launches of the kernels that sum up. Defined in reduction.cu, used by Reduction (reduction.hpp). Every kernel gives
// one value per result and slice of the terms; where there are several slices, the values of all slices go to memory as
// rows of results, and are reduced in a second launch. The order of all sums is fixed.
#pragma once

#include <cuda_runtime_api.h>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

enum class Accumulation : std::uint8_t { sum, sum_of_squares, maximum };

// dst[slice][result] = scale · what the accumulation gives.
struct ReductionTypes {
  Accumulation accumulation;
  DataType src, dst;
  float scale;
};

// Results are outer x columns, columns being neighbours in memory; terms are rows.
struct ColumnReduction {
  std::int64_t outer, rows, columns;
  std::int64_t outer_stride, row_stride;  // multiples of the width
  int width;                              // columns that a thread takes at once: 1 or full_pack(src)
  int lanes;                              // threads of a block side by side along the columns; a power of 2
  std::int64_t slices;
};
void launch_column_reduction(cudaStream_t stream, const ColumnReduction& reduction, const ReductionTypes& types,
                             const void* src, void* dst);

// Any: the walk of results gives where the terms of each begin, the walk of terms (by packs) where they lie from there.
struct TermReduction {
  Walk<1> results, terms;
  int width;
  std::int64_t slices;
};
void launch_term_reduction(cudaStream_t stream, const TermReduction& reduction, const ReductionTypes& types,
                           const void* src, void* dst);

// Threads of one block of either.
inline constexpr int kReductionThreads = 256;

}  // namespace trireme::cuda
