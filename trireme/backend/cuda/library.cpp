#include "trireme/backend/cuda/library.hpp"

#include <dlfcn.h>

#include <array>

#include "trireme/base/error.hpp"

namespace trireme::cuda {

void* Library::find(const char* function) const {
  void* const found = dlsym(open(), function);
  if (found == nullptr) {
    bad_input("--device cuda: {} has no {}: it is older than the one this program was built with; {}", file_, function,
              package_);
  }
  return found;
}

// Opening it again returns the same handle. Where the loader does not look, it may lie where it was when this was built.
void* Library::open() const {
  std::string problem;
  for (const std::string& path : {file_, TRIREME_CUDA_LIBRARIES + ("/" + file_)}) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (problem.empty()) problem = dlerror();
  }
  bad_input("--device cuda: {}; {}, or name its folder in LD_LIBRARY_PATH", problem, package_);
}

}  // namespace trireme::cuda
