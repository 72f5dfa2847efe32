#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/loss_scale_kernels.hpp"
#include "trireme/graph/ops/update.hpp"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;
// Vectors per thread, all loaded before the first is used.
constexpr int kVectorsPerThread = static_cast<int>(kGradientPiece) / (kThreads * kVector);
static_assert(kVectorsPerThread * kThreads * kVector == kGradientPiece);

__global__ void begin_rates(UnscaledRatesLaunch launch) {
  launch.rates[0] = *launch.learning_rate;
  launch.rates[1] = 1.0f / *launch.scale;
}

// Infinite or NaN: all exponent bits are set.
__device__ bool overflows(float value) { return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u; }

// All threads that find an overflow write the same value.
__global__ void __launch_bounds__(kThreads) refuse_overflow(const GradientPiece* pieces, float* factor) {
  const GradientPiece piece = pieces[blockIdx.x];
  const int count = static_cast<int>(piece.elements);
  const int vectors = count / kVector;
  const int thread = static_cast<int>(threadIdx.x);
  Pack<float, kVector> packs[kVectorsPerThread] = {};
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) packs[k] = load_pack<float, kVector>(piece.values + vector * kVector);
  }
  bool found = false;
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    for (int i = 0; i < kVector; ++i) found = found || overflows(packs[k].values[i]);
  }
  const int last = vectors * kVector + thread;
  if (last < count) found = found || overflows(piece.values[last]);
  if (found) *factor = 0;
}

__global__ void next_scale(LossScaleLaunch launch) {
  const bool skipped = launch.rates[1] == 0;
  const float good_updates = skipped ? 0 : *launch.good_updates + 1;
  const bool grows = good_updates >= launch.growth_interval;
  if (skipped) {
    *launch.scale = fmaxf(*launch.scale / 2, op::kLeastLossScale);
    *launch.skipped_updates += 1;
  } else if (grows) {
    *launch.scale = fminf(*launch.scale * 2, op::kMostLossScale);
  }
  *launch.good_updates = grows ? 0 : good_updates;
}

}  // namespace

void launch_unscaled_rates(cudaStream_t stream, const UnscaledRatesLaunch& launch) {
  begin_rates<<<1, 1, 0, stream>>>(launch);
  if (launch.count > 0) refuse_overflow<<<launch.count, kThreads, 0, stream>>>(launch.pieces, launch.rates + 1);
  check(cudaGetLastError(), "the check of gradients cannot be started");
}

void launch_update_loss_scale(cudaStream_t stream, const LossScaleLaunch& launch) {
  next_scale<<<1, 1, 0, stream>>>(launch);
  check(cudaGetLastError(), "the update of the loss scale cannot be started");
}

}  // namespace trireme::cuda
