#include <omp.h>

#include <cmath>

#include "trireme/backend/onednn/batch_statistics.hpp"
#include "trireme/backend/onednn/channel_kernel.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {
namespace {

constexpr auto kDoubleBytes = static_cast<std::int64_t>(sizeof(double));

// Batch statistics over all groups of cores or all replicas (see RunContext::statistics_groups): each publishes two
// numbers per channel, waits for the others and computes the same totals. Called by all threads of an OpenMP region.
std::int64_t told_bytes(const ChannelView& view) { return 2 * view.channels * kDoubleBytes; }

// Publishes of(channel), a pair of doubles, for every channel and waits for the other groups, if there are any.
template <typename OfChannel>
void tell_groups(const ChannelView& view, const Operands& operands, const RunContext& context, OfChannel of) {
  if (context.statistics_groups == 1) return;
  auto* mine = operands.shared<double>(context.statistics_group);
#pragma omp for schedule(static)
  for (std::int64_t channel = 0; channel < view.channels; ++channel) {
    const auto [first, second] = of(channel);
    mine[2 * channel] = first;
    mine[2 * channel + 1] = second;
  }
#pragma omp single
  context.share_statistics(operands.shared_blocks(), told_bytes(view));
}

// A channel's statistics over all groups; every group has the same number of samples.
Moments joined_moments(const Operands& operands, const RunContext& context, std::int64_t channel) {
  Moments all;
  for (int group = 0; group < context.statistics_groups; ++group) {
    all.mean += operands.shared<double>(group)[2 * channel] / context.statistics_groups;
  }
  for (int group = 0; group < context.statistics_groups; ++group) {
    const double* told = operands.shared<double>(group) + 2 * channel;
    const double off = told[0] - all.mean;
    all.variance += (told[1] + off * off) / context.statistics_groups;
  }
  return all;
}

Sums joined_sums(const Operands& operands, const RunContext& context, std::int64_t channel) {
  Sums all;
  for (int group = 0; group < context.statistics_groups; ++group) {
    const double* told = operands.shared<double>(group) + 2 * channel;
    all.first += told[0];
    all.second += told[1];
  }
  return all;
}

// Several groups meet once, between passes over everything; a single one does both passes for few channels at a time.
bool goes_by_group(const Strips& strips, const RunContext& context) {
  return context.statistics_groups == 1 && strips.worth_grouping(omp_get_max_threads());
}

template <typename Body>
void for_each_strip(const Strips& strips, std::int64_t group, Body body) {
  for (std::int64_t i = group * strips.per_group(); i < (group + 1) * strips.per_group(); ++i) body(i);
}

// Includes padded lanes.
template <typename Body>
void for_each_channel(const Strips& strips, std::int64_t group, Body body) {
  const Strip strip = strips[group * strips.per_group()];
  for (std::int64_t lane = 0; lane < strip.width; ++lane) body(strip.first_channel + lane);
}

template <typename Element>
void normalize(const op::BatchNorm& operation, const ChannelView& view, const Operands& operands,
               const RunContext& context) {
  std::size_t next = 0;
  const auto* src = operands.input<Element>(next++);
  const float* gamma = operation.gamma ? operands.input(next++) : nullptr;
  const float* beta = operands.input(next++);
  const auto* addend = operation.add ? operands.input<Element>(next) : nullptr;
  auto* dst = operands.output<Element>(0);
  float* mean = operands.output(1);
  float* variance = operands.output(2);
  const Strips strips(view);
  auto* partials = operands.scratch<double>();
  const ChannelAffine affine(view, operands.scratch<float>(partial_count(strips) * kDoubleBytes));
  const AffineOperands<Element> last{src, addend, dst, operation.activation == op::Activation::relu};
  const auto set = [&](std::int64_t channel) {
    if (channel >= view.channels) {
      affine.set(channel, 0, 0, 0);
      return;
    }
    const Moments moments = context.statistics_groups == 1 ? merged_moments(strips, channel, partials)
                                                           : joined_moments(operands, context, channel);
    mean[channel] = static_cast<float>(moments.mean);
    variance[channel] = static_cast<float>(moments.variance);
    // From the rounded variance, which is all that a recomputation has.
    const double scale = (gamma == nullptr ? 1.0 : gamma[channel]) /
                         std::sqrt(static_cast<double>(variance[channel]) + operation.epsilon);
    affine.set(channel, mean[channel], static_cast<float>(scale), beta[channel]);
  };
  const bool by_group = goes_by_group(strips, context);
#pragma omp parallel if (view.elements() > kParallelElements)
  if (by_group) {
#pragma omp for schedule(static)
    for (std::int64_t group = 0; group < strips.groups(); ++group) {
      for_each_strip(strips, group, [&](std::int64_t i) { strip_moments(strips, i, src, partials); });
      for_each_channel(strips, group, set);
      apply_channels(strips, group, affine, last);
    }
  } else {
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < strips.count(); ++i) strip_moments(strips, i, src, partials);
    tell_groups(view, operands, context,
                [&](std::int64_t channel) { return merged_moments(strips, channel, partials); });
#pragma omp for schedule(static)
    for (std::int64_t channel = 0; channel < view.padded_channels(); ++channel) set(channel);
    apply_channels(strips, affine, last);
  }
}

// One value per channel and padded lane, for GradientColumns.
struct ChannelGradient {
  using Columns = GradientColumns;
  float *mean, *of_diff, *of_x, *constant;

  static std::int64_t bytes(const ChannelView& view) {
    return 4 * view.padded_channels() * static_cast<std::int64_t>(sizeof(float));
  }
  ChannelGradient(const ChannelView& view, float* memory)
      : mean(memory),
        of_diff(memory + view.padded_channels()),
        of_x(memory + 2 * view.padded_channels()),
        constant(memory + 3 * view.padded_channels()) {}
  void spread(const Strip& strip, GradientColumns& columns) const {
    spread_lanes(strip, mean, columns.mean);
    spread_lanes(strip, of_diff, columns.of_diff);
    spread_lanes(strip, of_x, columns.of_x);
    spread_lanes(strip, constant, columns.constant);
  }
};

// The operands of a backward pass by name; null if absent.
template <typename Element>
struct BackwardOperands {
  GradientOperands<Element> loops;
  const float *mean, *variance, *gamma;
  float *diff_beta, *diff_gamma;

  BackwardOperands(const op::BatchNormBackward& operation, const Operands& operands) {
    std::size_t next = 0;
    loops.x = operands.input<Element>(next++);
    mean = operands.input(next++);
    variance = operands.input(next++);
    gamma = operation.gamma ? operands.input(next++) : nullptr;
    loops.diff = operands.input<Element>(next++);
    loops.more = operation.sum ? operands.input<Element>(next++) : nullptr;
    loops.dst = operation.activation == op::Activation::relu ? operands.input<Element>(next) : nullptr;
    next = 0;
    loops.diff_x = operands.output<Element>(next++);
    diff_beta = operands.output(next++);
    diff_gamma = operation.gamma ? operands.output(next++) : nullptr;
    loops.diff_addend = operation.add ? operands.output<Element>(next) : nullptr;
  }
};

// d: the gradient that the activation let through, m: mean, i = 1/sqrt(variance + epsilon), M: values per channel.
//   diff_beta = sum d,  diff_gamma = i·P with P = sum d·(x − m)
//   diff_src = gamma·i·(d − diff_beta/M − (x − m)·i²·P/M)
// Of several groups, each returns gradients summed over its own samples (the update takes their mean), and diff_src
// with the sums over all groups.
template <typename Element>
void normalize_backward(const op::BatchNormBackward& operation, const ChannelView& view, const Operands& operands,
                        const RunContext& context) {
  const BackwardOperands<Element> named(operation, operands);
  const Strips strips(view);
  auto* partials = operands.scratch<double>();
  const ChannelGradient gradient(view, operands.scratch<float>(partial_count(strips) * kDoubleBytes));
  const auto count = static_cast<double>(view.per_channel() * context.statistics_groups);
  // Padded lanes are read too.
  const auto set_mean = [&](std::int64_t channel) {
    gradient.mean[channel] = channel < view.channels ? named.mean[channel] : 0;
  };
  const auto add_up = [&](std::int64_t i) { strip_gradient_sums(strips, i, gradient.mean, named.loops, partials); };
  const auto set = [&](std::int64_t channel) {
    if (channel >= view.channels) {
      gradient.of_diff[channel] = gradient.of_x[channel] = gradient.constant[channel] = 0;
      return;
    }
    const Sums own = added_sums(strips, channel, partials);
    const Sums sums = context.statistics_groups == 1 ? own : joined_sums(operands, context, channel);
    const double inverse = 1 / std::sqrt(static_cast<double>(named.variance[channel]) + operation.epsilon);
    const double scale = (named.gamma == nullptr ? 1.0 : named.gamma[channel]) * inverse;
    named.diff_beta[channel] = static_cast<float>(own.first);
    if (named.diff_gamma != nullptr) named.diff_gamma[channel] = static_cast<float>(own.second * inverse);
    gradient.of_diff[channel] = static_cast<float>(scale);
    gradient.of_x[channel] = static_cast<float>(-scale * inverse * inverse * sums.second / count);
    gradient.constant[channel] = static_cast<float>(-scale * sums.first / count);
  };
  const bool by_group = goes_by_group(strips, context);
#pragma omp parallel if (view.elements() > kParallelElements)
  if (by_group) {
#pragma omp for schedule(static)
    for (std::int64_t group = 0; group < strips.groups(); ++group) {
      for_each_channel(strips, group, set_mean);
      for_each_strip(strips, group, add_up);
      for_each_channel(strips, group, set);
      apply_channels(strips, group, gradient, named.loops);
    }
  } else {
#pragma omp for schedule(static)
    for (std::int64_t channel = 0; channel < view.padded_channels(); ++channel) set_mean(channel);
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < strips.count(); ++i) add_up(i);
    tell_groups(view, operands, context, [&](std::int64_t channel) { return added_sums(strips, channel, partials); });
#pragma omp for schedule(static)
    for (std::int64_t channel = 0; channel < view.padded_channels(); ++channel) set(channel);
    apply_channels(strips, gradient, named.loops);
  }
}

template <typename Element>
void normalize_inference(const op::BatchNormInference& operation, const ChannelView& view, const Operands& operands) {
  std::size_t next = 0;
  const auto* src = operands.input<Element>(next++);
  const float* gamma = operation.gamma ? operands.input(next++) : nullptr;
  const float* beta = operands.input(next++);
  const float* mean = operands.input(next++);
  const float* variance = operands.input(next++);
  const auto* addend = operation.add ? operands.input<Element>(next) : nullptr;
  const Strips strips(view);
  const ChannelAffine affine(view, operands.scratch<float>());
  for (std::int64_t channel = 0; channel < view.padded_channels(); ++channel) {
    if (channel >= view.channels) {
      affine.set(channel, 0, 0, 0);
      continue;
    }
    const double scale = (gamma == nullptr ? 1.0 : gamma[channel]) /
                         std::sqrt(static_cast<double>(variance[channel]) + operation.epsilon);
    affine.set(channel, mean[channel], static_cast<float>(scale), beta[channel]);
  }
#pragma omp parallel if (view.elements() > kParallelElements)
  apply_channels(
      strips, affine,
      AffineOperands<Element>{src, addend, operands.output<Element>(), operation.activation == op::Activation::relu});
}

}  // namespace

KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request, const dnnl::engine&) {
  const ChannelView view = view_of_src(request);
  KernelChoice choice = channel_kernel(
      request, [operation, view]<typename Element>(Element, const Operands& operands, const RunContext& context) {
        normalize<Element>(operation, view, operands, context);
      });
  choice.scratch_bytes = partial_count(Strips(view)) * kDoubleBytes + ChannelAffine::bytes(view);
  choice.shared_bytes = told_bytes(view);
  if (operation.add) choice.in_place.emplace_back(static_cast<int>(request.inputs.size()) - 1, 0);
  choice.in_place.emplace_back(0, 0);
  return choice;
}

KernelChoice make(const op::BatchNormBackward& operation, const KernelRequest& request, const dnnl::engine&) {
  if (operation.mask_from_src) {
    fail(ErrorKind::failed, "the onednn backend masks '{}' by dst only: see Backend::masks_from_src()",
         request.node.name);
  }
  const ChannelView view = view_of_src(request);
  KernelChoice choice = channel_kernel(
      request, [operation, view]<typename Element>(Element, const Operands& operands, const RunContext& context) {
        normalize_backward<Element>(operation, view, operands, context);
      });
  choice.scratch_bytes = partial_count(Strips(view)) * kDoubleBytes + ChannelGradient::bytes(view);
  choice.shared_bytes = told_bytes(view);
  const int diff_dst = operation.gamma ? 4 : 3;
  const int diff_addend = operation.gamma ? 3 : 2;
  const int of_diff = operation.add ? diff_addend : 0;
  choice.in_place = {{diff_dst, of_diff}};
  if (operation.sum) choice.in_place.emplace_back(diff_dst + 1, of_diff);
  choice.in_place.emplace_back(0, 0);
  return choice;
}

KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request, const dnnl::engine&) {
  const ChannelView view = view_of_src(request);
  KernelChoice choice = channel_kernel(
      request, [operation, view]<typename Element>(Element, const Operands& operands, const RunContext&) {
        normalize_inference<Element>(operation, view, operands);
      });
  choice.scratch_bytes = ChannelAffine::bytes(view);
  if (operation.add) choice.in_place.emplace_back(static_cast<int>(request.inputs.size()) - 1, 0);
  choice.in_place.emplace_back(0, 0);
  return choice;
}

KernelChoice make(const op::Lrn& operation, const KernelRequest& request, const dnnl::engine& engine) {
  const TensorDesc& src = request.inputs[0];
  const Layout layout = viewable(src.shape, src.layout);
  const dnnl::memory::desc data = to_desc(src.shape, layout);
  const auto desc = lrn_forward(engine, data, operation, false);
  if (!desc)
    fail(ErrorKind::failed, "oneDNN has no LRN for '{}': {} as {}", request.node.name, to_string(src.shape),
         layout.name());
  KernelChoice choice;
  choice.inputs = choice.outputs = {layout};
  set_kernel(choice, engine, desc, {Argument::input(DNNL_ARG_SRC, data, 0), Argument::output(DNNL_ARG_DST, data)});
  return choice;
}

KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request, const dnnl::engine& engine) {
  const TensorDesc& src = request.inputs[0];
  const Layout layout = viewable(src.shape, src.layout);
  const dnnl::memory::desc data = to_desc(src.shape, layout);
  const op::Lrn lrn{.size = operation.size, .alpha = operation.alpha, .beta = operation.beta, .k = operation.k};
  const auto forward = lrn_forward(engine, data, lrn, true);
  const auto backward = forward ? lrn_backward(engine, data, lrn, forward) : dnnl::lrn_backward::primitive_desc();
  if (!backward) {
    fail(ErrorKind::failed, "oneDNN has no LRN backward for '{}': {} as {}", request.node.name, to_string(src.shape),
         layout.name());
  }
  KernelChoice choice;
  choice.inputs = {layout, layout};
  choice.outputs = {layout};
  choice.implementation = backward.impl_info_str();

  // Keeping the forward pass's dst and workspace would cost memory all this time: they are computed again, into the
  // scratch, which also holds the library's scratchpad.
  const auto aligned = [](std::int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const dnnl::memory::desc workspace = forward.workspace_desc();
  const std::int64_t workspace_at = aligned(bytes_of(data));
  const std::int64_t scratchpad_at = workspace_at + aligned(bytes_of(workspace));
  std::vector<Argument> first{Argument::input(DNNL_ARG_SRC, data, 0), Argument::scratch(DNNL_ARG_DST, data)};
  std::vector<Argument> second{Argument::input(DNNL_ARG_SRC, data, 0), Argument::input(DNNL_ARG_DIFF_DST, data, 1),
                               Argument::output(DNNL_ARG_DIFF_SRC, data)};
  const bool has_workspace = bytes_of(workspace) > 0;
  if (has_workspace) {
    first.push_back(Argument::scratch(DNNL_ARG_WORKSPACE, workspace, workspace_at));
    second.push_back(Argument::scratch(DNNL_ARG_WORKSPACE, workspace, workspace_at));
  }
  std::int64_t scratchpad_bytes = 0;
  const auto add_scratchpad = [&](const dnnl::memory::desc& desc, std::vector<Argument>& arguments) {
    if (bytes_of(desc) == 0) return;
    arguments.push_back(Argument::scratch(DNNL_ARG_SCRATCHPAD, desc, scratchpad_at));
    scratchpad_bytes = std::max(scratchpad_bytes, bytes_of(desc));
  };
  add_scratchpad(forward.scratchpad_desc(), first);
  add_scratchpad(backward.scratchpad_desc(), second);
  choice.scratch_bytes = scratchpad_at + scratchpad_bytes;
  std::vector<Step> steps;
  if (has_workspace) steps.push_back({dnnl::lrn_forward(forward), std::move(first), false});
  steps.push_back({dnnl::lrn_backward(backward), std::move(second), false});
  choice.kernel = std::make_unique<PrimitiveKernel>(engine, std::move(steps));
  return choice;
}

}  // namespace trireme::onednn
