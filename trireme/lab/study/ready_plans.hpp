// The plans that come with Trireme, one per study: the files of plans/, compiled in. Used by `sweep` and `compare`.
#pragma once

#include <span>
#include <string_view>

namespace trireme::lab {

struct ReadyPlan {
  std::string_view name;  // file name without .json
  std::string_view text;  // JSON
};

std::span<const ReadyPlan> ready_plans();

}  // namespace trireme::lab
