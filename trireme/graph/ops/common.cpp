#include "trireme/graph/ops/common.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::op {
namespace {

constexpr std::array<const char*, 2> kAxisNames{"height", "width"};

std::int64_t dilated_kernel(const Window& window, std::size_t axis) {
  return (window.kernel[axis] - 1) * window.dilation[axis] + 1;
}

void check_numbers(const Window& window) {
  const auto at_least = [](const Pair& pair, std::int64_t low, const char* what) {
    if (pair[0] < low || pair[1] < low) {
      bad_input("{} is {}x{} (height x width), expected {} or more on each axis", what, pair[0], pair[1], low);
    }
  };
  at_least(window.kernel, 1, "kernel");
  at_least(window.stride, 1, "stride");
  at_least(window.dilation, 1, "dilation");
  at_least(window.pad_before, 0, "padding before");
  at_least(window.pad_after, 0, "padding after");
}

}  // namespace

std::int64_t window_output(const Window& window, int axis, std::int64_t input) {
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t room = input + window.pad_before[a] + window.pad_after[a] - dilated_kernel(window, a);
  const std::int64_t stride = window.stride[a];
  // Rounds down for negative room too, so that a kernel too large by less than a stride gives 0, not 1.
  const std::int64_t steps = room >= 0 ? room / stride : -((-room + stride - 1) / stride);
  return steps + 1;
}

Pair window_outputs(const Window& window, Pair input) {
  check_numbers(window);
  Pair output{};
  for (std::size_t a = 0; a < 2; ++a) {
    output[a] = window_output(window, static_cast<int>(a), input[a]);
    if (output[a] < 1) {
      bad_input(
          "the output would have {} {}: the kernel spans {} but the input has {} {} plus padding {} before and {} "
          "after; "
          "expected an output of 1 or more (use a larger input, more padding or a smaller kernel)",
          kAxisNames[a], output[a], dilated_kernel(window, a), kAxisNames[a], input[a], window.pad_before[a],
          window.pad_after[a]);
    }
  }
  return output;
}

Window same_padding(Window window, std::int64_t height, std::int64_t width) {
  window.pad_before = window.pad_after = {0, 0};
  check_numbers(window);
  const Pair input{height, width};
  for (std::size_t a = 0; a < 2; ++a) {
    const std::int64_t output = (input[a] + window.stride[a] - 1) / window.stride[a];
    const std::int64_t total =
        std::max<std::int64_t>((output - 1) * window.stride[a] + dilated_kernel(window, a) - input[a], 0);
    window.pad_before[a] = total / 2;
    window.pad_after[a] = total - total / 2;
  }
  return window;
}

std::string to_string(const Window& window) {
  const auto pair = [](const Pair& p) {
    return p[0] == p[1] ? fmt::format("{}", p[0]) : fmt::format("{},{}", p[0], p[1]);
  };
  std::string text = fmt::format("{}x{}", window.kernel[0], window.kernel[1]);
  if (window.stride != Pair{1, 1}) text += fmt::format("/{}", pair(window.stride));
  if (window.dilation != Pair{1, 1}) text += fmt::format(" dilation {}", pair(window.dilation));
  if (window.pad_before != Pair{0, 0} || window.pad_after != Pair{0, 0}) {
    text += fmt::format(" pad {},{} x {},{}", window.pad_before[0], window.pad_after[0], window.pad_before[1],
                        window.pad_after[1]);
  }
  return text;
}

}  // namespace trireme::op
