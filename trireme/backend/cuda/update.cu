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

}  // namespace trireme::cuda
