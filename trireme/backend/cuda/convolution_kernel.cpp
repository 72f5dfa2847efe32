#include "trireme/backend/cuda/convolution_kernel.hpp"

#include <algorithm>
#include <array>

#include "trireme/backend/cuda/channels_kernels.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {
namespace {

using enum ConvolutionDirection;

// Folded convolutions of images with few channels: if the window moves by two pixels, 2 x 2 pixels of src become one
// pixel of four times the channels, and a window of half the size moves by one. Tensor cores then multiply whole
// vectors of channels, and fewer products are with the zeros that fill up the channels.

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t rounded_up(std::int64_t value, std::int64_t step) { return ceil_div(value, step) * step; }

// The window along one axis.
struct FoldedAxis {
  std::int64_t taps;           // of the folded window
  std::int64_t before, after;  // its padding; after may be negative if nothing reads the end of src
  std::int64_t shift;          // of the work's first tap among the unfolded taps
};

FoldedAxis folded_axis(const ConvolutionWork& work, const ConvolutionWay& way, std::size_t axis) {
  const std::int64_t kernel = work.window.kernel[axis], pad = work.window.pad_before[axis];
  if (way.fold == 1) return {kernel, pad, work.window.pad_after[axis], 0};
  // Window o begins at pixel fold·o − pad: in folded pixel o − before, shift pixels after its start.
  const int image_axis = static_cast<int>(axis) + 2;
  FoldedAxis folded{};
  folded.before = ceil_div(pad, way.fold);
  folded.shift = way.fold * folded.before - pad;
  folded.taps = ceil_div(folded.shift + kernel, way.fold);
  folded.after = work.dst[image_axis] - 1 + folded.taps - folded.before - ceil_div(work.src[image_axis], way.fold);
  if (!way.wide) return folded;
  const std::int64_t most = std::max(folded.before, folded.after);
  folded.taps += 2 * most - folded.before - folded.after;
  folded.shift += way.fold * (most - folded.before);
  folded.before = folded.after = most;
  return folded;
}

// The ways if src is an image. One of them folds nothing and only fills up the channels.
std::vector<ConvolutionWay> folded_ways(const ConvolutionWork& work) {
  const op::Window& window = work.window;
  const bool asymmetric = window.pad_before != window.pad_after;
  ConvolutionWay whole{.name = fmt::format("{}_channels", filled_channels(1, work.type)),
                       .pad_src = asymmetric,
                       .src_channels = filled_channels(1, work.type),
                       .weights_type = work.type,
                       .fold = 1};
  std::vector<ConvolutionWay> ways{std::move(whole)};
  constexpr int kFold = 2;
  const op::Pair step{kFold, kFold}, one{1, 1};
  if (window.stride != step || window.dilation != one) return ways;
  ConvolutionWay folded{.name = "folded",
                        .src_channels = kFold * kFold * filled_channels(kFold, work.type),
                        .weights_type = work.type,
                        .fold = kFold};
  const FoldedAxis height = folded_axis(work, folded, 0), width = folded_axis(work, folded, 1);
  if (height.after >= 0 && width.after >= 0) ways.push_back(folded);
  if (height.before != height.after || width.before != width.after) {
    folded.name = "folded_wide";
    folded.wide = true;
    ways.push_back(std::move(folded));
  }
  return ways;
}

// The shape that cuDNN sees in src's memory in image_layout.
Shape folded_src(const ConvolutionWork& work, const ConvolutionWay& way) {
  return {work.src[0], way.src_channels, ceil_div(work.src[2], way.fold), ceil_div(work.src[3], way.fold)};
}

// cuDNN's weights in the work's terms: with zero taps around them, in a layout that folds them.
struct FoldedWeights {
  TensorDesc desc;
  std::array<std::int64_t, 4> shift = {};  // of the work's weights within them, by axis
};

FoldedWeights folded_weights(const ConvolutionWork& work, const ConvolutionWay& way) {
  const FoldedAxis height = folded_axis(work, way, 0), width = folded_axis(work, way, 1);
  const Shape shape{work.weights[0], work.weights[1], height.taps * way.fold, width.taps * way.fold};
  return {.desc = {way.weights_type, shape, image_layout(way.fold, work.type)},
          .shift = {0, 0, height.shift, width.shift}};
}

// Changes a problem's src, weights and window to the folded ones.
void fold(const ConvolutionWork& work, const ConvolutionWay& way, ConvolutionProblem& problem) {
  problem.src = folded_src(work, way);
  problem.weights[1] = way.src_channels;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const FoldedAxis folded = folded_axis(work, way, axis);
    problem.weights[static_cast<int>(axis) + 2] = problem.window.kernel[axis] = folded.taps;
    problem.window.stride[axis] = work.window.stride[axis] / way.fold;
    problem.window.pad_before[axis] = folded.before;
    problem.window.pad_after[axis] = folded.after;
  }
}

// By axis: batch, channels, height, width of activations; out, in, height, width of weights.
using Extents4 = std::array<std::int64_t, 4>;

Extents4 reversed(const Extents4& shift) { return {-shift[0], -shift[1], -shift[2], -shift[3]}; }

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const ConvolutionWork& work, const ConvolutionWay& way, std::shared_ptr<const ExecutionPlan> plan,
                    CudaDevice& device)
      : work_(work),
        way_(way),
        plan_(std::move(plan)),
        device_(device),
        dst_loops_(channel_loops(work.dst, work.layout)) {
    const ConvolutionProblem problem = problem_of(work, way);
    const TensorDesc weights = work.direction == backward_weights
                                   ? TensorDesc{work.diff_weights.dtype, work.weights, work.diff_weights.layout}
                                   : TensorDesc{work.type, work.weights, work.layout};
    const Shape src = way.fold > 0 ? folded_src(work, way) : work.src;
    place_copy(src_copy_, {work.type, src, work.layout}, {problem.type, problem.src, problem.layout},
               {0, 0, way.pad_src ? work.window.pad_before[0] : 0, way.pad_src ? work.window.pad_before[1] : 0},
               work.direction == backward_data);
    const FoldedWeights folded = way.fold > 0 ? folded_weights(work, way)
                                              : FoldedWeights{{problem.weights_type, problem.weights, problem.layout}};
    place_copy(weights_copy_, weights, folded.desc, folded.shift, work.direction == backward_weights);
    workspace_at_ = take_scratch(plan_->workspace_bytes());
    sums_at_ = take_scratch(work.diff_bias ? channel_sums_scratch_bytes(dst_loops_) : 0);
  }

  std::int64_t scratch_bytes() const { return scratch_bytes_; }

  std::unique_ptr<Kernel> another() const override {
    return std::make_unique<ConvolutionKernel>(work_, way_, plan_, device_);
  }

  void bind(const KernelMemory& memory) override {
    memory_ = memory;
    std::map<std::int64_t, void*> tensors;
    const auto bind = [&](ConvolutionTensor tensor, void* pointer) {
      tensors[static_cast<std::int64_t>(tensor)] = pointer;
    };
    bind(ConvolutionTensor::src, src_copy_.run ? scratch(src_copy_.at) : src());
    bind(ConvolutionTensor::weights, weights_copy_.run ? scratch(weights_copy_.at) : weights());
    bind(ConvolutionTensor::dst, dst());
    if (way_.fused && work_.after.bias) bind(ConvolutionTensor::bias, bias());
    if (way_.fused && work_.after.add) bind(ConvolutionTensor::addend, addend());
    pack_.emplace(ExecutionPlan::bind(tensors, plan_->workspace_bytes() > 0 ? scratch(workspace_at_) : nullptr));
  }

  void run(const RunContext&) override {
    if (src_copy_.run && work_.direction != backward_data) src_copy_.run(src(), scratch(src_copy_.at));
    if (weights_copy_.run && work_.direction != backward_weights)
      weights_copy_.run(weights(), scratch(weights_copy_.at));
    plan_->execute(device_.cudnn(), *pack_);
    if (src_copy_.run && work_.direction == backward_data) src_copy_.run(scratch(src_copy_.at), src());
    if (weights_copy_.run && work_.direction == backward_weights)
      weights_copy_.run(scratch(weights_copy_.at), weights());
    if (work_.after.any() && !way_.fused) {
      launch_epilogue(device_, dst_loops_, work_.type,
                      {.src = dst(),
                       .bias = work_.after.bias ? static_cast<const float*>(bias()) : nullptr,
                       .addend = work_.after.add ? addend() : nullptr,
                       .dst = dst(),
                       .relu = work_.after.relu});
    }
    if (work_.diff_bias) {
      launch_channel_sums(device_, dst_loops_, work_.type, dst(), static_cast<float*>(memory_.outputs[1]),
                          static_cast<float*>(scratch(sums_at_)));
    }
  }

 private:
  // A tensor that cuDNN needs in another form: copied before cuDNN reads it, or after cuDNN has written it.
  struct Copy {
    std::int64_t at = 0;  // offset in the scratch
    CopyFunction run;     // empty: not needed
  };

  // Returns where in the scratch.
  std::int64_t take_scratch(std::int64_t bytes) {
    constexpr std::int64_t kAlignment = 256;
    return std::exchange(scratch_bytes_, scratch_bytes_ + rounded_up(bytes, kAlignment));
  }

  // shift: of the work's values in cuDNN's tensor.
  void place_copy(Copy& copy, const TensorDesc& works, const TensorDesc& cudnns, const Extents4& shift, bool written) {
    if (works == cudnns) return;
    copy.at = take_scratch(cudnns.bytes());
    const auto make_copy = cudnns.layout.blocks.empty() ? box_copy : any_reorder;
    copy.run = written ? make_copy(cudnns, works, device_, reversed(shift)) : make_copy(works, cudnns, device_, shift);
  }

  // The forward operation's tensors, or their gradients, in this kernel's memory.
  void* src() const { return work_.direction == backward_data ? memory_.outputs[0] : memory_.inputs[0]; }
  void* weights() const { return work_.direction == backward_weights ? memory_.outputs[0] : memory_.inputs[1]; }
  void* dst() const {
    if (work_.direction == forward) return memory_.outputs[0];
    return memory_.inputs[work_.direction == backward_data ? 0 : 1];
  }
  void* bias() const { return memory_.inputs[2]; }
  void* addend() const { return memory_.inputs.back(); }
  void* scratch(std::int64_t at) const { return static_cast<std::byte*>(memory_.scratch) + at; }

  ConvolutionWork work_;
  ConvolutionWay way_;
  std::shared_ptr<const ExecutionPlan> plan_;
  CudaDevice& device_;
  ChannelLoops dst_loops_;
  Copy src_copy_, weights_copy_;
  std::int64_t workspace_at_ = 0, sums_at_ = 0, scratch_bytes_ = 0;
  KernelMemory memory_;
  std::optional<BackendDescriptor> pack_;
};

}  // namespace

std::vector<ConvolutionWay> ways_of(const ConvolutionWork& work, bool tensor_cores) {
  const bool asymmetric = work.window.pad_before != work.window.pad_after;
  const std::int64_t channels = work.src[1];
  // Tensor cores take channels in units of 16 bytes.
  const std::int64_t whole = rounded_up(channels, 16 / size_of(work.type));
  const bool few_channels =
      tensor_cores && work.groups == 1 && work.layout == Layout::channels_last(4) && whole != channels;

  std::vector<ConvolutionWay> ways;
  if (work.image) {
    ways = folded_ways(work);
  } else {
    ways.push_back({.name = "as_is", .src_channels = channels, .weights_type = work.type});
    if (asymmetric)
      ways.push_back({.name = "padded", .pad_src = true, .src_channels = channels, .weights_type = work.type});
    if (few_channels) {
      // src is copied anyway, so the copy can include the padding.
      ways.push_back({.name = fmt::format("{}_channels", whole),
                      .pad_src = asymmetric,
                      .src_channels = whole,
                      .weights_type = work.type});
    }
  }
  std::vector<ConvolutionWay> result;
  for (ConvolutionWay& way : ways) {
    if (work.after.any()) {
      result.push_back(way);
      result.back().name += "+fused";
      result.back().fused = true;
    }
    if (work.direction == backward_weights && work.diff_weights.dtype != work.type) {
      result.push_back(way);
      result.back().name += "+f32";
      result.back().weights_type = work.diff_weights.dtype;
    }
    result.push_back(std::move(way));
  }
  return result;
}

ConvolutionProblem problem_of(const ConvolutionWork& work, const ConvolutionWay& way) {
  ConvolutionProblem problem{.direction = work.direction,
                             .src = work.src,
                             .weights = work.weights,
                             .dst = work.dst,
                             .window = work.window,
                             .layout = work.layout,
                             .type = work.type,
                             .weights_type = way.weights_type,
                             .after = way.fused ? work.after : After{}};
  if (way.fold > 0) {
    fold(work, way, problem);
  } else if (way.src_channels != work.src[1]) {
    problem.src[1] = problem.weights[1] = way.src_channels;
  }
  if (way.pad_src) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      problem.src[axis + 2] += work.window.pad_before[i] + work.window.pad_after[i];
    }
    problem.window.pad_before = problem.window.pad_after = {0, 0};
  }
  return problem;
}

KernelChoice make_choice(const ConvolutionWork& work, const ConvolutionWay& way, ExecutionPlan plan,
                         CudaDevice& device) {
  const Format activation(work.layout, work.type);
  const Format src(way.fold > 0 ? image_layout(way.fold, work.type) : work.layout, work.type);  // or its gradient
  KernelChoice choice;
  choice.inputs = {work.direction == backward_data ? activation : src, activation};
  choice.outputs = {work.direction == backward_weights ? work.diff_weights : activation};
  if (work.after.bias) choice.inputs.emplace_back(Layout::plain(1));
  if (work.after.add) choice.inputs.push_back(activation);
  if (work.diff_bias) choice.outputs.emplace_back(Layout::plain(1));
  auto kernel =
      std::make_unique<ConvolutionKernel>(work, way, std::make_shared<const ExecutionPlan>(std::move(plan)), device);
  choice.scratch_bytes = kernel->scratch_bytes();
  choice.kernel = std::move(kernel);
  return choice;
}

}  // namespace trireme::cuda
