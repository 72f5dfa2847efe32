#include "trireme/backend/onednn/linear_own.hpp"

#include <omp.h>

#include <algorithm>

#include "trireme/backend/onednn/linear_loops.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {
namespace {

// What one call gets of a matrix: rows of weights or their gradient, columns of diff_src.
constexpr std::int64_t kBlockRows = kLinearRows;
constexpr std::int64_t kBlockColumns = 960;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Equal parts of about the block's size, in whole units, a multiple of the threads' number of them.
class Shares {
 public:
  Shares(std::int64_t total, std::int64_t block, std::int64_t unit) : total_(total) {
    const std::int64_t parts = rounded_up((total + block - 1) / block, omp_get_max_threads());
    size_ = rounded_up((total + parts - 1) / parts, unit);
    count_ = (total + size_ - 1) / size_;
  }
  std::int64_t count() const { return count_; }
  Range operator[](std::int64_t part) const { return {part * size_, std::min(total_, (part + 1) * size_)}; }

 private:
  std::int64_t total_, size_ = 0, count_ = 0;
};

bool has_whole_rows(const Layout& layout) {
  const auto of_rows = [](const Layout::Block& block) { return block.axis == 0; };
  return layout.order.front() == 0 && std::none_of(layout.blocks.begin(), layout.blocks.end(), of_rows);
}

std::optional<LinearSizes> sizes_of(const Shape& src, std::int64_t out, const LinearLayouts& layouts) {
  const LinearSizes sizes{.batch = src[0], .columns = layouts.src.elements(src) / src[0], .out = out};
  const bool fits = has_linear_loops() && layouts.src == layouts.weights && has_whole_rows(layouts.src) &&
                    sizes.batch <= kLinearBatch && sizes.columns % kLinearColumns == 0;
  return fits ? std::optional(sizes) : std::nullopt;
}

bool is_worth_threads(const LinearSizes& sizes) {
  return sizes.batch * sizes.columns * sizes.out > 16 * kParallelElements;
}

}  // namespace

std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(request.inputs[0].shape, request.inputs[1].shape[0], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [operation, sizes = *sizes](const Operands& operands, const RunContext&) {
    const LinearForward work{.sizes = sizes,
                             .src = operands.input(0),
                             .weights = operands.input(1),
                             .bias = operation.bias ? operands.input(2) : nullptr,
                             .dst = operands.output(),
                             .relu = operation.activation == op::Activation::relu};
    const Shares shares(sizes.out, kBlockRows, 3);
#pragma omp parallel for schedule(static) if (is_worth_threads(sizes))
    for (std::int64_t part = 0; part < shares.count(); ++part) linear_forward(work, shares[part]);
  });
  choice.inputs[0] = layouts.src;
  choice.inputs[1] = layouts.weights;
  return choice;
}

std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(operation.src_shape, request.inputs[1].shape[0], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [sizes = *sizes](const Operands& operands, const RunContext&) {
    const LinearBackwardData work{
        .sizes = sizes, .diff_dst = operands.input(0), .weights = operands.input(1), .diff_src = operands.output()};
    const Shares shares(sizes.columns, kBlockColumns, kLinearColumns);
#pragma omp parallel for schedule(static) if (is_worth_threads(sizes))
    for (std::int64_t part = 0; part < shares.count(); ++part) linear_backward_data(work, shares[part]);
  });
  choice.inputs[1] = layouts.weights;
  choice.outputs[0] = layouts.src;
  return choice;
}

std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts) {
  const auto sizes = sizes_of(request.inputs[0].shape, request.inputs[1].shape[1], layouts);
  if (!sizes) return std::nullopt;
  KernelChoice choice = own_kernel(request, [operation, sizes = *sizes](const Operands& operands, const RunContext&) {
    float* diff_weights = operands.output(0);
    const auto bytes = sizes.out * sizes.columns * static_cast<std::int64_t>(sizeof(float));
    const LinearBackwardWeights work{.sizes = sizes,
                                     .src = operands.input(0),
                                     .diff_dst = operands.input(1),
                                     .diff_weights = diff_weights,
                                     .diff_bias = operation.bias ? operands.output(1) : nullptr,
                                     .stream = can_stream(diff_weights, bytes)};
    const Shares shares(sizes.out, kBlockRows, 8);
#pragma omp parallel for schedule(static) if (is_worth_threads(sizes))
    for (std::int64_t part = 0; part < shares.count(); ++part) linear_backward_weights(work, shares[part]);
  });
  choice.inputs[0] = layouts.src;
  choice.outputs[0] = layouts.weights;
  return choice;
}

}  // namespace trireme::onednn
