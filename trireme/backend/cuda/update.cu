#include <cmath>

#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/update_kernels.hpp"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = 4;
// Vectors of a thread, all of which are on their way before the first is used.
constexpr int kVectorsPerThread = static_cast<int>(kUpdatePiece) / (kThreads * kVector);
static_assert(kVectorsPerThread * kThreads * kVector == kUpdatePiece);

// Of adam's betas. From these, powers near 1 lose no digits when they are taken from 1.
struct Logarithms {
  float beta1, beta2;
};

// 1 − beta^t
__device__ float correction(float log_beta, float t) { return -expm1f(t * log_beta); }

template <op::OptimizerKind kKind>
__device__ float rate_of(const UpdateLaunch& launch, Logarithms logarithms) {
  const float rate = *launch.learning_rate;
  if constexpr (kKind == op::OptimizerKind::adam) {
    const auto t = static_cast<float>(*launch.step + 1);
    return rate * sqrtf(correction(logarithms.beta2, t)) / correction(logarithms.beta1, t);
  } else {
    return rate;
  }
}

// One value with its gradient and state; the formulas are at op::OptimizerRule.
template <op::OptimizerKind kKind>
__device__ void update(const op::OptimizerRule& rule, float rate, float gradient, float& value, float& first,
                       float& second) {
  const float g = gradient + rule.weight_decay * value;
  if constexpr (kKind == op::OptimizerKind::sgd) {
    value -= rate * g;
  } else if constexpr (kKind == op::OptimizerKind::momentum) {
    first = rule.momentum * first + g;
    value -= rate * first;
  } else if constexpr (kKind == op::OptimizerKind::nesterov) {
    first = rule.momentum * first + g;
    value -= rate * (g + rule.momentum * first);
  } else if constexpr (kKind == op::OptimizerKind::rmsprop) {
    first = rule.decay * first + (1 - rule.decay) * g * g;
    second = rule.momentum * second + rate * g / sqrtf(first + rule.epsilon);
    value -= second;
  } else {
    first = rule.beta1 * first + (1 - rule.beta1) * g;
    second = rule.beta2 * second + (1 - rule.beta2) * g * g;
    value -= rate * first / (sqrtf(second) + rule.epsilon);
  }
}

template <op::OptimizerKind kKind>
constexpr bool kHasFirst = kKind != op::OptimizerKind::sgd;
template <op::OptimizerKind kKind>
constexpr bool kHasSecond = kKind == op::OptimizerKind::rmsprop || kKind == op::OptimizerKind::adam;

// N neighbours of a piece while a thread works on them.
template <op::OptimizerKind kKind, int N>
struct Elements {
  Pack<float, N> value, gradient, first, second;

  __device__ void load(const UpdateRange& piece, int at) {
    value = load_pack<float, N>(piece.values + at);
    gradient = load_pack<float, N>(piece.gradients + at);
    if constexpr (kHasFirst<kKind>) first = load_pack<float, N>(piece.first_state + at);
    if constexpr (kHasSecond<kKind>) second = load_pack<float, N>(piece.second_state + at);
  }
  __device__ void apply(const op::OptimizerRule& rule, float rate, float gradient_factor) {
    for (int i = 0; i < N; ++i) {
      // Rounded by itself: a factor of 1 changes no result.
      const float unscaled = __fmul_rn(gradient_factor, gradient.values[i]);
      update<kKind>(rule, rate, unscaled, value.values[i], first.values[i], second.values[i]);
    }
  }
  __device__ void store(const UpdateRange& piece, int at, DataType shadow_type) const {
    store_pack<float, N>(piece.values + at, value);
    if constexpr (kHasFirst<kKind>) store_pack<float, N>(piece.first_state + at, first);
    if constexpr (kHasSecond<kKind>) store_pack<float, N>(piece.second_state + at, second);
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

template <op::OptimizerKind kKind>
__global__ void __launch_bounds__(kThreads) update_pieces(UpdateLaunch launch, Logarithms logarithms) {
  const float gradient_factor = launch.gradient_factor == nullptr ? 1.0f : *launch.gradient_factor;
  if (gradient_factor == 0) return;
  const UpdateRange piece = launch.pieces[blockIdx.x];
  const float rate = rate_of<kKind>(launch, logarithms);
  const int count = static_cast<int>(piece.elements);
  const int vectors = count / kVector;
  const int thread = static_cast<int>(threadIdx.x);

  Elements<kKind, kVector> elements[kVectorsPerThread];
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector < vectors) elements[k].load(piece, vector * kVector);
  }
#pragma unroll
  for (int k = 0; k < kVectorsPerThread; ++k) {
    const int vector = thread + k * kThreads;
    if (vector >= vectors) continue;
    elements[k].apply(launch.rule, rate, gradient_factor);
    elements[k].store(piece, vector * kVector, launch.shadow_type);
  }
  const int last = vectors * kVector + thread;
  if (last < count) {
    Elements<kKind, 1> rest;
    rest.load(piece, last);
    rest.apply(launch.rule, rate, gradient_factor);
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
  const op::OptimizerRule& rule = launch.rule;
  const Logarithms logarithms{.beta1 = static_cast<float>(std::log(static_cast<double>(rule.beta1))),
                              .beta2 = static_cast<float>(std::log(static_cast<double>(rule.beta2)))};
  switch (rule.kind) {
    case op::OptimizerKind::sgd:
      update_pieces<op::OptimizerKind::sgd><<<launch.count, kThreads, 0, stream>>>(launch, logarithms);
      break;
    case op::OptimizerKind::momentum:
      update_pieces<op::OptimizerKind::momentum><<<launch.count, kThreads, 0, stream>>>(launch, logarithms);
      break;
    case op::OptimizerKind::nesterov:
      update_pieces<op::OptimizerKind::nesterov><<<launch.count, kThreads, 0, stream>>>(launch, logarithms);
      break;
    case op::OptimizerKind::rmsprop:
      update_pieces<op::OptimizerKind::rmsprop><<<launch.count, kThreads, 0, stream>>>(launch, logarithms);
      break;
    case op::OptimizerKind::adam:
      update_pieces<op::OptimizerKind::adam><<<launch.count, kThreads, 0, stream>>>(launch, logarithms);
      break;
  }
  check(cudaGetLastError(), "an update cannot be started");
}

void launch_moving_averages(cudaStream_t stream, const AverageRange* pieces, int count, float decay) {
  average_pieces<<<count, kThreads, 0, stream>>>(pieces, decay);
  check(cudaGetLastError(), "moving averages cannot be started");
}

}  // namespace trireme::cuda
