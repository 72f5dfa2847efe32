// Launches reductions (reduction.cu) for reduction.cpp. A kernel gives one value per result and slice of the terms;
// several slices are rows of results that a second launch reduces. The order of all sums is fixed.
#pragma once

#include <cuda_runtime_api.h>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

enum class Accumulation : std::uint8_t { sum, sum_of_squares, maximum };

// dst[slice][result] = scale · the accumulated value.
struct ReductionTypes {
  Accumulation accumulation;
  DataType src, dst;
  float scale;
};

// Results are outer x columns, with columns contiguous in memory; terms are rows.
struct ColumnReduction {
  std::int64_t outer, rows, columns;
  std::int64_t outer_stride, row_stride;  // multiples of the width
  int width;                              // columns per thread at once: 1 or full_pack(src)
  int lanes;                              // threads of a block along the columns; a power of 2
  std::int64_t slices;
};
void launch_column_reduction(cudaStream_t stream, const ColumnReduction& reduction, const ReductionTypes& types,
                             const void* src, void* dst);

// General case: the results' walk gives where terms begin, the terms' walk (in packs) the offsets from there.
struct TermReduction {
  Walk<1> results, terms;
  int width;
  std::int64_t slices;
};
void launch_term_reduction(cudaStream_t stream, const TermReduction& reduction, const ReductionTypes& types,
                           const void* src, void* dst);

inline constexpr int kReductionThreads = 256;

}  // namespace trireme::cuda
