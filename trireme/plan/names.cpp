#include "trireme/plan/names.hpp"

namespace trireme {

std::string_view to_string(DataFormat format) {
  switch (format) {
    case DataFormat::nchw:
      return "nchw";
    case DataFormat::nhwc:
      return "nhwc";
    case DataFormat::automatic:
      break;
  }
  return "auto";
}

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::fp32:
      break;
  }
  return "fp32";
}

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::cheap:
      return "cheap";
    case Recompute::full:
      return "full";
    case Recompute::none:
      break;
  }
  return "none";
}

}  // namespace trireme
