// The device code of loss scaling: launched by loss_scale.cpp, defined in loss_scale.cu. All pointers are to the GPU's
// memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::cuda {

// Neighbouring values of a gradient, which begin at a multiple of 16 bytes.
struct GradientPiece {
  const float* values = nullptr;
  std::int64_t elements = 0;
};

// The most elements of a piece, which one block of threads looks at.
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
