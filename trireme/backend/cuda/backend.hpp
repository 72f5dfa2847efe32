// The backend for NVIDIA GPUs: convolutions by cuDNN, matrix products by cuBLAS, everything else by kernels of its own.
// Made by the registry.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/backend/tuner.hpp"

namespace trireme::cuda {

// Error(bad_input) if there is no such GPU, or no driver.
std::unique_ptr<Backend> make_backend(TuningOptions tuning, int gpu = 0);

// How many GPUs can be used; where none, why.
struct Gpus {
  int count = 0;
  std::string problem = {};
};
Gpus find_gpus();

// Of CUDA's libraries: name and version.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace trireme::cuda
