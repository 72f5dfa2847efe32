// Values that change from run to run, in GPU memory because a captured step keeps its arguments. See set_context().
#pragma once

#include <cstdint>

namespace trireme::cuda {

struct RunValues {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // updates of the variables done before this run
  std::int64_t sample_offset = 0;
};

}  // namespace trireme::cuda
