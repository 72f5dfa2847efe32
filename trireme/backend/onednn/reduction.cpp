#include <algorithm>
#include <limits>
#include <numeric>

#include "trireme/backend/onednn/channel_loops.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

// Elements summed in float before they go into a double; a task is a multiple of this.
constexpr std::int64_t kRun = 1024;
constexpr std::int64_t kTask = 16 * kRun;

TRIREME_SIMD float sum_run(const float* values, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

TRIREME_SIMD float square_run(const float* values, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += values[i] * values[i];
  return sum;
}

std::int64_t task_count(std::int64_t elements) { return (elements + kTask - 1) / kTask; }

// The sum of run_sum over a flat array, in an order that does not depend on the number of threads.
template <typename RunSum>
double flat_sum(const float* values, std::int64_t elements, double* partials, RunSum run_sum) {
  const std::int64_t tasks = task_count(elements);
#pragma omp parallel for schedule(static) if (elements > kParallelElements)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t end = std::min(elements, (task + 1) * kTask);
    double sum = 0;
    for (std::int64_t begin = task * kTask; begin < end; begin += kRun)
      sum += run_sum(values + begin, std::min(kRun, end - begin));
    partials[task] = sum;
  }
  return std::accumulate(partials, partials + tasks, 0.0);
}

// One value per sample and channel: global pooling.
struct ImageReduction {
  ChannelView view;
  op::ReduceKind kind;

  // Reduces the lanes from `lane` on of one sample's block, at most a panel's width, into dst (batch x channels).
  template <typename Element>
  void reduce(const Element* src, std::int64_t n, std::int64_t block, std::int64_t lane, Element* dst) const {
    const std::int64_t first = block * view.lanes + lane;
    const Strip strip{.offset = view.offset(n, block) + lane,
                      .rows = view.positions,
                      .stride = view.lanes,
                      .width = std::min(kPanelWidth, view.lanes - lane),
                      .first_channel = first};
    double results[kPanelWidth];
    std::fill_n(results, kPanelWidth, kind == op::ReduceKind::max ? -std::numeric_limits<double>::infinity() : 0.0);
    for_each_panel(strip, [&](const Panel& panel) {
      alignas(64) float columns[kPanelWidth];
      if (kind == op::ReduceKind::max) {
        std::fill_n(columns, kPanelWidth, -std::numeric_limits<float>::infinity());
        max_columns(panel, src, columns);
        for (std::int64_t j = 0; j < panel.width; ++j) {
          results[j % panel.lanes] = std::max<double>(results[j % panel.lanes], columns[j]);
        }
      } else {
        sum_columns(panel, src, columns);
        fold_columns(panel, columns, results);
      }
    });
    const double divisor = kind == op::ReduceKind::mean ? static_cast<double>(view.positions) : 1.0;
    const std::int64_t real = std::min(strip.width, view.channels - first);
    for (std::int64_t l = 0; l < real; ++l)
      dst[n * view.channels + first + l] = static_cast<float>(results[l] / divisor);
  }
};

KernelChoice reduce_image(const KernelRequest& request, const ImageReduction& reduction) {
  const DataType type = request.inputs[0].dtype;
  KernelChoice choice = with_element(type, [&]<typename Element>(Element) {
    return own_kernel(request, [reduction](const Operands& operands, const RunContext&) {
      const ChannelView& view = reduction.view;
      const auto* src = operands.input<Element>(0);
      auto* dst = operands.output<Element>();
#pragma omp parallel for collapse(3) schedule(static) if (view.elements() > kParallelElements)
      for (std::int64_t n = 0; n < view.batch; ++n) {
        for (std::int64_t block = 0; block < view.blocks; ++block) {
          for (std::int64_t lane = 0; lane < view.lanes; lane += kPanelWidth)
            reduction.reduce(src, n, block, lane, dst);
        }
      }
    });
  });
  choice.inputs[0] = request.inputs[0].format();
  choice.outputs[0].dtype = type;
  return choice;
}

KernelChoice reduce_all(const op::Reduce& operation, const KernelRequest& request) {
  const TensorDesc& src = request.inputs[0];
  const double divisor = operation.kind == op::ReduceKind::mean ? static_cast<double>(src.shape.elements()) : 1.0;
  const std::int64_t elements = src.layout.elements(src.shape);
  KernelChoice choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
    *operands.output() =
        static_cast<float>(flat_sum(operands.input(0), elements, operands.scratch<double>(), sum_run) / divisor);
  });
  choice.inputs[0] = src.layout;
  choice.scratch_bytes = task_count(elements) * static_cast<std::int64_t>(sizeof(double));
  return choice;
}

// Any axes of a plain tensor: kept positions give the results, reduced positions the terms of each.
struct AxisWalk {
  std::vector<std::int64_t> extents, strides;

  std::int64_t count() const {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t offset(std::int64_t position) const {
    std::int64_t result = 0;
    for (std::size_t i = extents.size(); i-- > 0;) {
      result += position % extents[i] * strides[i];
      position /= extents[i];
    }
    return result;
  }
};

KernelChoice reduce_axes(const op::Reduce& operation, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  AxisWalk kept, reduced;
  std::int64_t stride = shape.elements();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    stride /= shape[axis];
    const bool reduces = operation.axes.empty() || std::ranges::count(operation.axes, axis) > 0;
    AxisWalk& walk = reduces ? reduced : kept;
    walk.extents.push_back(shape[axis]);
    walk.strides.push_back(stride);
  }
  return own_kernel(request, [=, kind = operation.kind](const Operands& operands, const RunContext&) {
    const float* src = operands.input(0);
    float* dst = operands.output();
    const std::int64_t results = kept.count(), terms = reduced.count();
#pragma omp parallel for schedule(static) if (results * terms > kParallelElements)
    for (std::int64_t result = 0; result < results; ++result) {
      const float* first = src + kept.offset(result);
      double sum = 0, maximum = -std::numeric_limits<double>::infinity();
      for (std::int64_t term = 0; term < terms; ++term) {
        const double value = first[reduced.offset(term)];
        sum += value;
        maximum = std::max(maximum, value);
      }
      if (kind == op::ReduceKind::mean) sum /= static_cast<double>(terms);
      dst[result] = static_cast<float>(kind == op::ReduceKind::max ? maximum : sum);
    }
  });
}

}  // namespace

KernelChoice make(const op::Reduce& operation, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& src = request.inputs[0];
  const int rank = src.shape.rank();
  std::vector<int> image_axes(std::max(rank - 2, 0));
  std::iota(image_axes.begin(), image_axes.end(), 2);
  const auto view = channel_view(src.shape, src.layout);
  if (rank > 2 && operation.axes == image_axes && view) return reduce_image(request, {*view, operation.kind});
  const bool all = operation.axes.empty() || static_cast<int>(operation.axes.size()) == rank;
  // Padding adds nothing to a sum, but its zeros could be a maximum.
  if (all && operation.kind != op::ReduceKind::max) return reduce_all(operation, request);
  return reduce_axes(operation, request);
}

KernelChoice make(const op::L2Loss& operation, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& src = request.inputs[0];
  const std::int64_t elements = src.layout.elements(src.shape);
  KernelChoice choice =
      own_kernel(request, [elements, scale = operation.scale](const Operands& operands, const RunContext&) {
        const double squares = flat_sum(operands.input(0), elements, operands.scratch<double>(), square_run);
        *operands.output() = static_cast<float>(scale * squares / 2);
      });
  choice.inputs[0] = src.layout;
  choice.scratch_bytes = task_count(elements) * static_cast<std::int64_t>(sizeof(double));
  return choice;
}

}  // namespace trireme::onednn
