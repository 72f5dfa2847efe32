#include <algorithm>
#include <cmath>
#include <type_traits>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

struct Moments {
  double mean, variance;
};

Moments channel_moments(const ChannelView& view, const float* src, std::int64_t channel) {
  const auto count = static_cast<double>(view.per_channel());
  double sum = 0;
  for (std::int64_t n = 0; n < view.batch; ++n) {
    for (std::int64_t i = 0; i < view.inner; ++i) sum += src[view.offset(n, channel, i)];
  }
  const double mean = sum / count;
  double squares = 0;
  for (std::int64_t n = 0; n < view.batch; ++n) {
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const double centred = src[view.offset(n, channel, i)] - mean;
      squares += centred * centred;
    }
  }
  return {mean, squares / count};
}

// dst = activation(gamma·(src − mean)/sqrt(variance + epsilon) + beta + addend) for one channel.
struct Affine {
  double mean, inverse_stddev, gamma, beta;

  Affine(const Moments& moments, double epsilon, double gamma_, double beta_)
      : mean(moments.mean), inverse_stddev(1 / std::sqrt(moments.variance + epsilon)), gamma(gamma_), beta(beta_) {}
  double normalized(double value) const { return (value - mean) * inverse_stddev; }
  double at(double value) const { return gamma * normalized(value) + beta; }
};

void normalize_channel(const ChannelView& view, std::int64_t channel, const Affine& affine, const float* src,
                       const float* addend, op::Activation activation, float* dst) {
  for (std::int64_t n = 0; n < view.batch; ++n) {
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const std::int64_t at = view.offset(n, channel, i);
      const double sum = affine.at(src[at]) + (addend == nullptr ? 0 : addend[at]);
      dst[at] = static_cast<float>(activate(sum, activation));
    }
  }
}

// The operands of a backward pass by name; null if absent.
struct BackwardOperands {
  const float *src, *mean, *variance, *gamma, *diff_dst, *diff_more, *dst, *beta;
  float *diff_src, *diff_beta, *diff_gamma, *diff_addend;

  BackwardOperands(const op::BatchNormBackward& operation, const Operands& operands)
      : src(operands.input(0)), mean(operands.input(1)), variance(operands.input(2)) {
    std::size_t next = 3;
    gamma = operation.gamma ? operands.input(next++) : nullptr;
    diff_dst = operands.input(next++);
    diff_more = operation.sum ? operands.input(next++) : nullptr;
    const bool masked = operation.activation == op::Activation::relu;
    dst = masked && !operation.mask_from_src ? operands.input(next) : nullptr;
    beta = masked && operation.mask_from_src ? operands.input(next) : nullptr;
    next = 0;
    diff_src = operands.output(next++);
    diff_beta = operands.output(next++);
    diff_gamma = operation.gamma ? operands.output(next++) : nullptr;
    diff_addend = operation.add ? operands.output(next) : nullptr;
  }

  // What the forward pass did with a channel.
  Affine affine(std::int64_t channel, double epsilon) const {
    return {{mean[channel], variance[channel]},
            epsilon,
            gamma == nullptr ? 1 : gamma[channel],
            beta == nullptr ? 0 : beta[channel]};
  }
  // The gradient before the activation.
  double diff(std::int64_t at, const Affine& forward) const {
    if (dst != nullptr && !(dst[at] > 0)) return 0;
    if (beta != nullptr && !(forward.at(src[at]) > 0)) return 0;
    return diff_more == nullptr ? diff_dst[at] : static_cast<double>(diff_dst[at]) + diff_more[at];
  }
};

void backward_channel(const ChannelView& view, std::int64_t channel, double epsilon, const BackwardOperands& b) {
  const Affine forward = b.affine(channel, epsilon);
  double sum_diff = 0, sum_diff_normalized = 0;
  for (std::int64_t n = 0; n < view.batch; ++n) {
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const std::int64_t at = view.offset(n, channel, i);
      const double diff = b.diff(at, forward);
      sum_diff += diff;
      sum_diff_normalized += diff * forward.normalized(b.src[at]);
    }
  }
  b.diff_beta[channel] = static_cast<float>(sum_diff);
  if (b.diff_gamma != nullptr) b.diff_gamma[channel] = static_cast<float>(sum_diff_normalized);

  const auto count = static_cast<double>(view.per_channel());
  for (std::int64_t n = 0; n < view.batch; ++n) {
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const std::int64_t at = view.offset(n, channel, i);
      const double diff = b.diff(at, forward);
      const double common = (sum_diff + forward.normalized(b.src[at]) * sum_diff_normalized) / count;
      b.diff_src[at] = static_cast<float>(forward.gamma * forward.inverse_stddev * (diff - common));
      if (b.diff_addend != nullptr) b.diff_addend[at] = static_cast<float>(diff);
    }
  }
}

// Local response normalization: dst = src·scale^−beta with scale = k + alpha/size · sum of src² over the neighbors.
struct LocalResponse {
  ChannelView view;
  op::Lrn parameters;

  std::int64_t first_neighbour(std::int64_t channel) const {
    return std::max<std::int64_t>(channel - parameters.size / 2, 0);
  }
  std::int64_t end_neighbour(std::int64_t channel) const {
    return std::min(channel + parameters.size / 2 + 1, view.channels);
  }
  double alpha_per_cell() const { return static_cast<double>(parameters.alpha) / static_cast<double>(parameters.size); }

  double scale(const float* src, std::int64_t n, std::int64_t channel, std::int64_t i) const {
    double squares = 0;
    for (std::int64_t c = first_neighbour(channel); c < end_neighbour(channel); ++c) {
      const double value = src[view.offset(n, c, i)];
      squares += value * value;
    }
    return parameters.k + alpha_per_cell() * squares;
  }

  double dst(const float* src, std::int64_t n, std::int64_t channel, std::int64_t i) const {
    return src[view.offset(n, channel, i)] * std::pow(scale(src, n, channel, i), -parameters.beta);
  }
  // src affects dst of its own channel directly, and of every neighbor through the neighbor's scale.
  double diff_src(const float* src, const float* diff_dst, std::int64_t n, std::int64_t channel, std::int64_t i) const {
    const double beta = parameters.beta;
    double through_scales = 0;
    for (std::int64_t c = first_neighbour(channel); c < end_neighbour(channel); ++c) {
      const std::int64_t at = view.offset(n, c, i);
      through_scales += static_cast<double>(diff_dst[at]) * src[at] * std::pow(scale(src, n, c, i), -beta - 1);
    }
    const std::int64_t at = view.offset(n, channel, i);
    return diff_dst[at] * std::pow(scale(src, n, channel, i), -beta) -
           2 * alpha_per_cell() * beta * src[at] * through_scales;
  }
};

// The output at each position is value(operands, n, channel, i).
template <typename Value>
KernelChoice response_loops(const KernelRequest& request, const ChannelView& view, Value value) {
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    float* dst = operands.output();
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < view.batch; ++n) {
      for (std::int64_t channel = 0; channel < view.channels; ++channel) {
        for (std::int64_t i = 0; i < view.inner; ++i)
          dst[view.offset(n, channel, i)] = static_cast<float>(value(operands, n, channel, i));
      }
    }
  });
}

// Training uses the statistics of the batch and stores them; inference gets them.
template <typename Operation>
KernelChoice normalize(const Operation& operation, const KernelRequest& request) {
  constexpr bool kTraining = std::is_same_v<Operation, op::BatchNorm>;
  const ChannelView view(request.inputs[0].shape);
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    std::size_t next = 0;
    const float* src = operands.input(next++);
    const float* gamma = operation.gamma ? operands.input(next++) : nullptr;
    const float* beta = operands.input(next++);
    const float* mean = kTraining ? operands.output(1) : operands.input(next++);
    const float* variance = kTraining ? operands.output(2) : operands.input(next++);
    const float* addend = operation.add ? operands.input(next) : nullptr;
    float* dst = operands.output(0);
#pragma omp parallel for schedule(static)
    for (std::int64_t channel = 0; channel < view.channels; ++channel) {
      if constexpr (kTraining) {
        const Moments moments = channel_moments(view, src, channel);
        operands.output(1)[channel] = static_cast<float>(moments.mean);
        operands.output(2)[channel] = static_cast<float>(moments.variance);
      }
      // From the rounded statistics, which are all that a recomputation has.
      const Affine affine({mean[channel], variance[channel]}, operation.epsilon, gamma == nullptr ? 1 : gamma[channel],
                          beta[channel]);
      normalize_channel(view, channel, affine, src, addend, operation.activation, dst);
    }
  });
}

}  // namespace

KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request) {
  return normalize(operation, request);
}

KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request) {
  const ChannelView view(request.inputs[0].shape);
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    const BackwardOperands named(operation, operands);
#pragma omp parallel for schedule(static)
    for (std::int64_t channel = 0; channel < view.channels; ++channel)
      backward_channel(view, channel, operation.epsilon, named);
  });
}

KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request) {
  return normalize(operation, request);
}

KernelChoice make(const op::Lrn& operation, const KernelRequest& request) {
  const LocalResponse response{ChannelView(request.inputs[0].shape), operation};
  return response_loops(request, response.view,
                        [response](const Operands& operands, std::int64_t n, std::int64_t channel, std::int64_t i) {
                          return response.dst(operands.input(0), n, channel, i);
                        });
}

KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request) {
  const op::Lrn parameters{.size = operation.size, .alpha = operation.alpha, .beta = operation.beta, .k = operation.k};
  const LocalResponse response{ChannelView(request.inputs[0].shape), parameters};
  return response_loops(request, response.view,
                        [response](const Operands& operands, std::int64_t n, std::int64_t channel, std::int64_t i) {
                          return response.diff_src(operands.input(0), operands.input(1), n, channel, i);
                        });
}

}  // namespace trireme::reference
