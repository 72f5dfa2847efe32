// The plans that come with Trireme, one for each study that it repeats: the files of plans/, compiled in, so that they
// are there wherever the binary is. Used by `trireme sweep`.
#pragma once

#include <span>
#include <string_view>

namespace trireme::lab {

struct ReadyPlan {
  std::string_view name;  // of the file, without .json
  std::string_view text;  // JSON
};

std::span<const ReadyPlan> ready_plans();

}  // namespace trireme::lab
