#include "trireme/backend/cuda/convolution_fold.hpp"

#include <algorithm>

#include "trireme/backend/cuda/formats.hpp"

namespace trireme::cuda {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The window along one axis.
struct FoldedAxis {
  std::int64_t taps;           // of the folded window
  std::int64_t before, after;  // its padding; after may be negative where nothing reads the end of src
  std::int64_t shift;          // of the first tap of the work in the unfolded taps
};

FoldedAxis folded_axis(const ConvolutionWork& work, const ConvolutionWay& way, std::size_t axis) {
  const std::int64_t kernel = work.window.kernel[axis], pad = work.window.pad_before[axis];
  if (way.fold == 1) return {kernel, pad, work.window.pad_after[axis], 0};
  // Window o begins at pixel fold·o − pad, that is in the folded pixel o − before, shift pixels behind its begin.
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

}  // namespace

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

Shape folded_src(const ConvolutionWork& work, const ConvolutionWay& way) {
  return {work.src[0], way.src_channels, ceil_div(work.src[2], way.fold), ceil_div(work.src[3], way.fold)};
}

FoldedWeights folded_weights(const ConvolutionWork& work, const ConvolutionWay& way) {
  const FoldedAxis height = folded_axis(work, way, 0), width = folded_axis(work, way, 1);
  const Shape shape{work.weights[0], work.weights[1], height.taps * way.fold, width.taps * way.fold};
  return {.desc = {way.weights_type, shape, image_layout(way.fold, work.type)},
          .shift = {0, 0, height.shift, width.shift}};
}

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

}  // namespace trireme::cuda
