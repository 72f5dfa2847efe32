#include "trireme/plan/compile_options.hpp"

#include <array>

namespace trireme {

std::string_view to_string(DataFormat format) {
  constexpr std::array kNames{"auto", "nchw", "nhwc"};
  return kNames.at(static_cast<std::size_t>(format));
}

std::string_view to_string(Precision precision) {
  constexpr std::array kNames{"fp32", "tf32", "bf16", "fp16"};
  return kNames.at(static_cast<std::size_t>(precision));
}

std::string_view to_string(Recompute recompute) {
  constexpr std::array kNames{"none", "cheap", "full"};
  return kNames.at(static_cast<std::size_t>(recompute));
}

}  // namespace trireme
