#include <algorithm>
#include <cmath>
#include <limits>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// A tensor as rows of the last axis.
struct Rows {
  std::int64_t count, width;

  explicit Rows(const Shape& shape)
      : count(shape.elements() / shape[shape.rank() - 1]), width(shape[shape.rank() - 1]) {}
};

// log(sum(exp)), shifted by the maximum to avoid overflow.
double log_sum_exp(const float* values, std::int64_t count) {
  const double maximum = *std::max_element(values, values + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(values[i] - maximum);
  return maximum + std::log(sum);
}

void softmax_row(const float* src, std::int64_t count, double normalizer, float* dst) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = static_cast<float>(std::exp(src[i] - normalizer));
}

bool is_class(std::int32_t label, std::int64_t classes) { return label >= 0 && label < classes; }

// The target's probability for a class. NaN if the label is not a class, so that it shows and cannot train silently.
struct Target {
  double on_label, everywhere;
  std::int32_t label;

  Target(std::int32_t label_, double smoothing, std::int64_t classes)
      : on_label(1 - smoothing),
        everywhere(is_class(label_, classes) ? smoothing / static_cast<double>(classes)
                                             : std::numeric_limits<double>::quiet_NaN()),
        label(label_) {}
  double at(std::int64_t c) const { return everywhere + (c == label ? on_label : 0); }
};

}  // namespace

KernelChoice make(const op::Softmax&, const KernelRequest& request) {
  return plain_loops(request, [rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    float* dst = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const float* values = src + row * rows.width;
      softmax_row(values, rows.width, log_sum_exp(values, rows.width), dst + row * rows.width);
    }
  });
}

KernelChoice make(const op::SoftmaxBackward&, const KernelRequest& request) {
  return plain_loops(request, [rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
    const float* diff_dst = operands.input(0);
    const float* dst = operands.input(1);
    float* diff_src = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const std::int64_t begin = row * rows.width, end = begin + rows.width;
      double expected = 0;  // mean of diff_dst under the row's probabilities
      for (std::int64_t i = begin; i < end; ++i) expected += static_cast<double>(diff_dst[i]) * dst[i];
      for (std::int64_t i = begin; i < end; ++i) diff_src[i] = static_cast<float>(dst[i] * (diff_dst[i] - expected));
    }
  });
}

KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request) {
  return plain_loops(request, [=, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
    const float* logits = operands.input(0);
    const auto* labels = operands.input<std::int32_t>(1);
    float* losses = operands.output(0);
    float* probabilities = operands.output(1);
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const float* values = logits + row * rows.width;
      const double normalizer = log_sum_exp(values, rows.width);
      softmax_row(values, rows.width, normalizer, probabilities + row * rows.width);
      const Target target(labels[row], operation.label_smoothing, rows.width);
      double loss = 0;  // −sum of target · log(probability)
      for (std::int64_t c = 0; c < rows.width; ++c) {
        if (target.at(c) != 0) loss += target.at(c) * (normalizer - values[c]);  // 0·infinity counts as 0
      }
      losses[row] = static_cast<float>(loss);
    }
  });
}

KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request) {
  return plain_loops(request, [=, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
    const float* probabilities = operands.input(0);
    const auto* labels = operands.input<std::int32_t>(1);
    const float* diff_losses = operands.input(2);
    float* diff_logits = operands.output();
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const Target target(labels[row], operation.label_smoothing, rows.width);
      for (std::int64_t c = 0; c < rows.width; ++c) {
        const std::int64_t at = row * rows.width + c;
        diff_logits[at] = static_cast<float>(diff_losses[row] * (probabilities[at] - target.at(c)));
      }
    }
  });
}

KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request) {
  return plain_loops(request, [=, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
    const float* logits = operands.input(0);
    const auto* labels = operands.input<std::int32_t>(1);
    std::int64_t hits = 0;
    for (std::int64_t row = 0; row < rows.count; ++row) {
      if (!is_class(labels[row], rows.width)) continue;
      const float* values = logits + row * rows.width;
      const float own = values[labels[row]];
      // "Not less or equal", so that NaN never counts as correct.
      const auto greater = std::count_if(values, values + rows.width, [own](float other) { return !(other <= own); });
      if (greater < operation.k) ++hits;
    }
    *operands.output() = static_cast<float>(static_cast<double>(hits) / static_cast<double>(rows.count));
  });
}

}  // namespace trireme::reference
