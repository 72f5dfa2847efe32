// The three products of a fully connected layer for small batches, where the time is that of reading or writing the
// weights once. All matrices are row-major; rows of src and weights have the same columns. Used by linear_own.cpp,
// which shares the rows or columns out among threads.
#pragma once

#include <cstdint>

namespace trireme::onednn {

// What the loops are for: rows of whole vectors of the widest instruction set, samples and (forward, at once) rows
// whose sums fit the cache.
inline constexpr std::int64_t kLinearColumns = 16;
inline constexpr std::int64_t kLinearBatch = 32;
inline constexpr std::int64_t kLinearRows = 48;

struct LinearSizes {
  std::int64_t batch, columns, out;
};

// Half-open.
struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// Whether this CPU has the instructions that the loops below are made of.
bool has_linear_loops();

// dst[n][o] = src[n] · weights[o] + bias[o] for the rows o of weights in a range, at least 0 with relu; bias may be
// null.
struct LinearForward {
  LinearSizes sizes;
  const float *src, *weights, *bias;
  float* dst;
  bool relu;
};
void linear_forward(const LinearForward& work, const Range& rows);

// diff_src[n][k] = sum over o of diff_dst[n][o]·weights[o][k] for the columns k in a range of whole vectors.
struct LinearBackwardData {
  LinearSizes sizes;
  const float *diff_dst, *weights;
  float* diff_src;
};
void linear_backward_data(const LinearBackwardData& work, const Range& columns);

// diff_weights[o][k] = sum over n of diff_dst[n][o]·src[n][k], diff_bias[o] = sum over n of diff_dst[n][o], for the
// rows o in a range; diff_bias may be null. stream: diff_weights, aligned to 64 bytes, is written around the cache.
struct LinearBackwardWeights {
  LinearSizes sizes;
  const float *src, *diff_dst;
  float *diff_weights, *diff_bias;
  bool stream;
};
void linear_backward_weights(const LinearBackwardWeights& work, const Range& rows);

}  // namespace trireme::onednn
