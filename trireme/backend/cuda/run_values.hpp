// What changes from run to run and kernels read from the GPU's memory, since a recorded step has no other arguments
// than those it was recorded with. Set by CudaDevice::set_context().
#pragma once

#include <cstdint>

namespace trireme::cuda {

struct RunValues {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // updates of the variables done before this run
  std::int64_t sample_offset = 0;
};

}  // namespace trireme::cuda
