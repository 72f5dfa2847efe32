// Launches loss scaling. Defined in loss_scale.cu, used by loss_scale.cpp. All pointers are to GPU memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::cuda {

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
