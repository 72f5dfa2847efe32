#include "trireme/backend/cuda/library.hpp"

#include <dlfcn.h>

#include "trireme/base/error.hpp"
#include "trireme/features.hpp"

namespace trireme::cuda {

void* Library::find(const char* function) const {
  std::string problem;
  void* const handle = open(problem);
  if (handle == nullptr) {
    bad_input("--device cuda: {}; {}, or add its folder to LD_LIBRARY_PATH", problem, package_);
  }
  void* const found = dlsym(handle, function);
  if (found == nullptr) {
    bad_input("--device cuda: {} has no {}: it is older than the one this program was built with; {}", file_, function,
              package_);
  }
  return found;
}

bool Library::is_there() const {
  std::string problem;
  return open(problem) != nullptr;
}

// dlopen returns the same handle every time. If the loader does not find the library, tries the build's folders.
void* Library::open(std::string& problem) const {
  std::string folders = TRIREME_CUDA_LIBRARIES;
  std::string path = file_;
  for (;;) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (problem.empty()) problem = dlerror();
    if (folders.empty()) return nullptr;
    const std::size_t end = folders.find(':');
    path = folders.substr(0, end) + "/" + file_;
    folders = end == std::string::npos ? "" : folders.substr(end + 1);
  }
}

const Library& cublas_library() {
  static const Library library(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                               fmt::format("install cuBLAS for CUDA {}", CUBLAS_VER_MAJOR));
  return library;
}

const Library& cudnn_library() {
  static const Library library("libcudnn.so.9", "install cuDNN 9 for the CUDA of this build");
  return library;
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fail(ErrorKind::failed, "CUDA: {}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuDNN: {}: {}", what, cudnnGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::failed, "cuBLAS: {}: {}", what, cublasLtGetStatusString(status));
}

}  // namespace trireme::cuda
