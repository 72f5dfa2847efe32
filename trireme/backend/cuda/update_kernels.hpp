// Launches updates and loss scaling. Defined in update.cu, used by update.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/graph/ops/update.hpp"

namespace trireme::cuda {

// Contiguous values to apply a rule to. Addresses are aligned to 16 bytes, the shadow's to 8.
struct UpdateRange {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* states[op::kMostStates] = {};  // unused if the rule does not keep them
  void* shadow = nullptr;               // the values in the narrow type, or null
  std::int64_t elements = 0;
};

// The most elements of a range that one block of threads takes.
inline constexpr std::int64_t kUpdatePiece = 2048;

struct UpdateLaunch {
  op::OptimizerRule rule;
  DataType shadow_type = DataType::bf16;   // or f16
  const float* learning_rate = nullptr;    // these four are in GPU memory
  const float* gradient_factor = nullptr;  // null: 1; if it is 0, nothing is updated
  const std::uint64_t* step = nullptr;     // updates done before
  const UpdateRange* pieces = nullptr;
  int count = 0;
};
void launch_update(cudaStream_t stream, const UpdateLaunch& launch);

// variable = decay·variable + share·value, for contiguous values.
struct AverageRange {
  float* variable = nullptr;
  const float* value = nullptr;
  float share = 0;
  int elements = 0;  // at most kAveragePiece
};
inline constexpr std::int64_t kAveragePiece = 1024;
// The pieces are in GPU memory.
void launch_moving_averages(cudaStream_t stream, const AverageRange* pieces, int count, float decay);

// Loss scaling. All pointers are to GPU memory.

// Contiguous values of a gradient, aligned to 16 bytes.
struct GradientPiece {
  const float* values = nullptr;
  std::int64_t elements = 0;
};

// The most elements of a piece, which one block of threads checks.
inline constexpr std::int64_t kGradientPiece = 8192;

struct UnscaledRatesLaunch {
  const float* learning_rate = nullptr;
  const float* scale = nullptr;
  const GradientPiece* pieces = nullptr;
  int count = 0;
  float* rates = nullptr;
};
void launch_unscaled_rates(cudaStream_t stream, const UnscaledRatesLaunch& launch);

struct LossScaleLaunch {
  float* scale = nullptr;
  float* good_updates = nullptr;
  float* skipped_updates = nullptr;
  const float* rates = nullptr;
  float growth_interval = 0;
};
void launch_update_loss_scale(cudaStream_t stream, const LossScaleLaunch& launch);

}  // namespace trireme::cuda
