#include <algorithm>
#include <cmath>
#include <limits>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {
namespace {

// A tensor as rows of the last axis.
struct Rows {
  std::int64_t count, width;

  explicit Rows(const Shape& shape)
      : count(shape.elements() / shape[shape.rank() - 1]), width(shape[shape.rank() - 1]) {}
};

bool is_class(std::int32_t label, std::int64_t classes) { return label >= 0 && label < classes; }

// Writes the probabilities of a row; returns log(sum(exp)).
double softmax_row(const float* values, std::int64_t count, float* probabilities) {
  const float maximum = *std::max_element(values, values + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    probabilities[i] = std::exp(values[i] - maximum);
    sum += probabilities[i];
  }
  const auto scale = static_cast<float>(1 / sum);
  for (std::int64_t i = 0; i < count; ++i) probabilities[i] *= scale;
  return maximum + std::log(sum);
}

double cross_entropy(const float* values, std::int64_t count, double normalizer, std::int32_t label, double smoothing) {
  if (!is_class(label, count)) return std::numeric_limits<double>::quiet_NaN();
  const double on_label = (1 - smoothing) * (normalizer - values[label]);
  if (smoothing == 0) return on_label;
  double everywhere = 0;
  for (std::int64_t i = 0; i < count; ++i) everywhere += normalizer - values[i];
  return on_label + smoothing / static_cast<double>(count) * everywhere;
}

}  // namespace

KernelChoice make(const op::Softmax&, const KernelRequest& request, const dnnl::engine& engine) {
  const Shape& shape = request.inputs[0].shape;
  const Layout plain = Layout::plain(shape.rank());
  const dnnl::memory::desc data = to_desc(shape, plain);
  const auto desc = softmax_forward(engine, data, shape.rank() - 1);
  if (!desc)
    fail(ErrorKind::failed, "oneDNN {} has no softmax for '{}': {}", library_version(), request.node.name,
         to_string(shape));
  KernelChoice choice;
  choice.inputs = choice.outputs = {plain};
  choice.in_place = {{0, 0}};
  set_kernel(choice, engine, desc, {Argument::input(DNNL_ARG_SRC, data, 0), Argument::output(DNNL_ARG_DST, data)});
  return choice;
}

KernelChoice make(const op::SoftmaxBackward&, const KernelRequest& request, const dnnl::engine& engine) {
  const Shape& shape = request.inputs[0].shape;
  const Layout plain = Layout::plain(shape.rank());
  const dnnl::memory::desc data = to_desc(shape, plain);
  const auto desc = softmax_backward(engine, data, shape.rank() - 1);
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no softmax backward for '{}': {}", library_version(), request.node.name,
         to_string(shape));
  }
  KernelChoice choice;
  choice.inputs = {plain, plain};
  choice.outputs = {plain};
  choice.in_place = {{0, 0}};
  set_kernel(choice, engine, desc,
             {Argument::input(DNNL_ARG_DIFF_DST, data, 0), Argument::input(DNNL_ARG_DST, data, 1),
              Argument::output(DNNL_ARG_DIFF_SRC, data)});
  return choice;
}

KernelChoice make(const op::SoftmaxCrossEntropy& operation, const KernelRequest& request, const dnnl::engine&) {
  return own_kernel(
      request, [operation, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
        const float* logits = operands.input(0);
        const auto* labels = operands.input<std::int32_t>(1);
        float* losses = operands.output(0);
        float* probabilities = operands.output(1);
#pragma omp parallel for schedule(static) if (rows.count * rows.width > kParallelElements / 4)
        for (std::int64_t row = 0; row < rows.count; ++row) {
          const float* values = logits + row * rows.width;
          const double normalizer = softmax_row(values, rows.width, probabilities + row * rows.width);
          losses[row] =
              static_cast<float>(cross_entropy(values, rows.width, normalizer, labels[row], operation.label_smoothing));
        }
      });
}

KernelChoice make(const op::SoftmaxCrossEntropyBackward& operation, const KernelRequest& request, const dnnl::engine&) {
  KernelChoice choice = own_kernel(
      request, [operation, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
        const float* probabilities = operands.input(0);
        const auto* labels = operands.input<std::int32_t>(1);
        const float* diff_losses = operands.input(2);
        float* diff_logits = operands.output();
#pragma omp parallel for schedule(static) if (rows.count * rows.width > kParallelElements)
        for (std::int64_t row = 0; row < rows.count; ++row) {
          const bool valid = is_class(labels[row], rows.width);
          const float everywhere = valid ? operation.label_smoothing / static_cast<float>(rows.width)
                                         : std::numeric_limits<float>::quiet_NaN();
          const float diff = diff_losses[row];
          const float* from = probabilities + row * rows.width;
          float* to = diff_logits + row * rows.width;
          const float of_label = valid ? from[labels[row]] - (1 - operation.label_smoothing) - everywhere : 0;
          for (std::int64_t c = 0; c < rows.width; ++c) to[c] = diff * (from[c] - everywhere);
          if (valid) to[labels[row]] = diff * of_label;
        }
      });
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::TopKAccuracy& operation, const KernelRequest& request, const dnnl::engine&) {
  return own_kernel(
      request, [k = operation.k, rows = Rows(request.inputs[0].shape)](const Operands& operands, const RunContext&) {
        const float* logits = operands.input(0);
        const auto* labels = operands.input<std::int32_t>(1);
        std::int64_t hits = 0;
#pragma omp parallel for schedule(static) reduction(+ : hits) if (rows.count * rows.width > kParallelElements)
        for (std::int64_t row = 0; row < rows.count; ++row) {
          if (!is_class(labels[row], rows.width)) continue;
          const float* values = logits + row * rows.width;
          const float own = values[labels[row]];
          // "Not less or equal", so that NaN never counts as correct.
          std::int64_t greater = 0;
          for (std::int64_t c = 0; c < rows.width; ++c) greater += !(values[c] <= own) ? 1 : 0;
          if (greater < k) ++hits;
        }
        *operands.output() = static_cast<float>(static_cast<double>(hits) / static_cast<double>(rows.count));
      });
}

}  // namespace trireme::onednn
