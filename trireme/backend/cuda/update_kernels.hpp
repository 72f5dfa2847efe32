// The device code of updates: launched by update.cpp, defined in update.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/graph/ops/update.hpp"

namespace trireme::cuda {

// Neighbouring values that a rule is applied to, with everything that belongs to them. All addresses are multiples of
// 16 bytes, the shadow's of 8.
struct UpdateRange {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* states[op::kMostStates] = {};  // those that the rule does not keep are not looked at
  void* shadow = nullptr;               // the values in the narrow type; nullptr: none
  std::int64_t elements = 0;
};

// The most elements of a range that is a piece of work for one block of threads.
inline constexpr std::int64_t kUpdatePiece = 2048;

struct UpdateLaunch {
  op::OptimizerRule rule;
  DataType shadow_type = DataType::bf16;   // or f16
  const float* learning_rate = nullptr;    // these four are in the GPU's memory
  const float* gradient_factor = nullptr;  // nullptr: 1; if it is 0, nothing is updated
  const std::uint64_t* step = nullptr;     // updates done before
  const UpdateRange* pieces = nullptr;
  int count = 0;
};
void launch_update(cudaStream_t stream, const UpdateLaunch& launch);

// variable = decay·variable + share·value, for neighbouring values.
struct AverageRange {
  float* variable = nullptr;
  const float* value = nullptr;
  float share = 0;
  int elements = 0;  // at most kAveragePiece
};
inline constexpr std::int64_t kAveragePiece = 1024;
// The pieces are in the GPU's memory.
void launch_moving_averages(cudaStream_t stream, const AverageRange* pieces, int count, float decay);

}  // namespace trireme::cuda
