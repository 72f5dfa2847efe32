// The matrix products of Winograd's convolution: a panel of up to 14 rows x up to 2 vectors of results is kept in
// registers while the inner dimension is walked. Used by winograd_forward.cpp and winograd_gradient.cpp.
#pragma once

#include <cstdint>

namespace trireme::onednn::winograd {

inline constexpr int kMaxRows = 14;  // with two vectors each, the sums leave four of the 32 registers for operands
inline constexpr int kMaxVectors = 2;

// m[row][vectors·16] = sum over the inner dimension of v[block][row][16] (value i of block b is 16·b + i) times
// u[16·block + i][vectors·16].
using RowProduct = void (*)(std::int64_t blocks, const float* v, const float* u, float* m);
RowProduct row_product(int rows, int vectors);

// s[row][lane] = sum over count of x[i][row]·y[i][lane], or that added to s; 16 rows and lanes.
void block_product(std::int64_t count, const float* x, const float* y, bool add, float* s);

}  // namespace trireme::onednn::winograd
