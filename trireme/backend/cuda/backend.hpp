// The backend for NVIDIA GPUs: convolutions by cuDNN, matrix products by cuBLAS, own kernels. Made by the registry.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/backend/tuner.hpp"

namespace trireme::cuda {

// Error(unavailable) if the machine has no usable GPU or driver, Error(bad_input) if it has no GPU of this number.
std::unique_ptr<Backend> make_backend(TuningOptions tuning, int gpu = 0);

// problem: why there are none.
struct Gpus {
  int count = 0;
  std::string problem = {};
};
Gpus find_gpus();

// Names and versions of CUDA's libraries that this was built with.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace trireme::cuda
