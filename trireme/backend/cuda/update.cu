#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/update_kernels.hpp"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;
// Vectors per thread, all loaded before the first is used.
constexpr int kVectorsPerThread = static_cast<int>(kUpdatePiece) / (kThreads * kVector);
static_assert(kVectorsPerThread * kThreads * kVector == kUpdatePiece);
constexpr int kGradientVectors = static_cast<int>(kGradientPiece) / (kThreads * kVector);
static_assert(kGradientVectors * kThreads * kVector == kGradientPiece);

// N elements of a piece while a thread works on them.
template <typename Optimizer, int N>
struct Elements {
  static constexpr int kStates = static_cast<int>(Optimizer::kStates.size());
  Pack<float, N> value, gradient, states[op::kMostStates];

  __device__ void load(const UpdateRange& piece, int at) {
    value = load_pack<float, N>(piece.values + at);
    gradient = load_pack<float, N>(piece.gradients + at);
    for (int s = 0; s < kStates; ++s) states[s] = load_pack<float, N>(piece.states[s] + at);
  }
  __device__ void apply(const op::OptimizerRule& rule, const op::Rates<float>& rates, float gradient_factor) {
    for (int i = 0; i < N; ++i) {
      // Rounded separately: a factor of 1 must not change any result.
      const float unscaled = __fmul_rn(gradient_factor, gradient.values[i]);
      float state[op::kMostStates];
      for (int s = 0; s < kStates; ++s) state[s] = states[s].values[i];
      Optimizer::update(rule, rates, unscaled, value.values[i], state);
      for (int s = 0; s < kStates; ++s) states[s].values[i] = state[s];
    }
  }
  __device__ void store(const UpdateRange& piece, int at, DataType shadow_type) const {
    store_pack<float, N>(piece.values + at, value);
    for (int s = 0; s < kStates; ++s) store_pack<float, N>(piece.states[s] + at, states[s]);
    if (piece.shadow == nullptr) return;
    if (shadow_type == DataType::bf16) {
      store_shadow(static_cast<Bf16*>(piece.shadow) + at);
    } else {
      store_shadow(static_cast<Fp16*>(piece.shadow) + at);
    }
  }
  template <typename Element>
  __device__ void store_shadow(Element* to) const {
    Pack<Element, N> shadow;
    for (int i = 0; i < N; ++i) shadow.values[i] = from_float<Element>(value.values[i]);
    store_pack<Element, N>(to, shadow);
  }
};

template <typename Optimizer>
__global__ void __launch_bounds__(kThreads) update_pieces(UpdateLaunch launch) {
  const float gradient_factor = launch.gradient_factor == nullptr ? 1.0f : *launch.gradient_factor;
  if (gradient_factor == 0) return;
  const UpdateRange piece = launch.pieces[blockIdx.x];
  const float rate = *launch.learning_rate, t = static_cast<float>(*launch.step + 1);
  const op::Rates<float> rates{rate, Optimizer::corrected_rate(launch.rule, rate, t)};
  const int count = static_cast<int>(piece.elements);
  const int vectors = count / kVector;
  const int thread = static_cast<int>(threadIdx.x);

  Elements<Optimizer, kVector> elements[kVectorsPerThread];
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) elements[k].load(piece, vector * kVector);
  }
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector >= vectors) continue;
    elements[k].apply(launch.rule, rates, gradient_factor);
    elements[k].store(piece, vector * kVector, launch.shadow_type);
  }
  const int last = vectors * kVector + thread;
  if (last < count) {
    Elements<Optimizer, 1> rest;
    rest.load(piece, last);
    rest.apply(launch.rule, rates, gradient_factor);
    rest.store(piece, last, launch.shadow_type);
  }
}

__global__ void __launch_bounds__(kThreads) average_pieces(const AverageRange* pieces, float decay) {
  const AverageRange piece = pieces[blockIdx.x];
#pragma unroll
  for (int k = 0; k < static_cast<int>(kAveragePiece) / kThreads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    if (i < piece.elements) piece.variable[i] = decay * piece.variable[i] + piece.share * piece.value[i];
  }
}

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
  Pack<float, kVector> packs[kGradientVectors] = {};
#pragma unroll
  for (int k = 0; k < kGradientVectors; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) packs[k] = load_pack<float, kVector>(piece.values + vector * kVector);
  }
  bool found = false;
#pragma unroll
  for (int k = 0; k < kGradientVectors; ++k) {
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

void launch_update(cudaStream_t stream, const UpdateLaunch& launch) {
  op::Optimizers::visit(launch.rule.kind, [&](auto optimizer) {
    update_pieces<decltype(optimizer)><<<launch.count, kThreads, 0, stream>>>(launch);
  });
  check(cudaGetLastError(), "an update cannot be started");
}

void launch_moving_averages(cudaStream_t stream, const AverageRange* pieces, int count, float decay) {
  average_pieces<<<count, kThreads, 0, stream>>>(pieces, decay);
  check(cudaGetLastError(), "moving averages cannot be started");
}

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
