// NVIDIA's libraries, opened when a GPU is first used: mapping them costs a tenth of a second, and machines without a
// GPU need not have them. In this namespace, their functions' names are objects that look the function up when called.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string>

namespace trireme::cuda {

class Library {
 public:
  // package: what to install if the file is missing.
  Library(std::string file, std::string package) : file_(std::move(file)), package_(std::move(package)) {}

  // Opens the library at the first call. Error(bad_input) if it or the function is missing. Thread-safe.
  void* find(const char* function) const;
  bool is_there() const;

 private:
  void* open(std::string& problem) const;  // nullptr if it fails, with the problem

  std::string file_, package_;
};

// A function of a library under its own name, looked up at the first call.
template <auto kFunction>
class LibraryFunction;
template <typename Result, typename... Parameters, Result (*kFunction)(Parameters...)>
class LibraryFunction<kFunction> {
 public:
  constexpr LibraryFunction(const Library& (*library)(), const char* name) : library_(library), name_(name) {}

  Result operator()(Parameters... arguments) const {
    static const auto function = reinterpret_cast<decltype(kFunction)>(library_().find(name_));
    return function(arguments...);
  }

 private:
  const Library& (*library_)();
  const char* name_;
};
#define TRIREME_LIBRARY_FUNCTION(library, name) \
  inline constexpr LibraryFunction<&::name> name { library, #name }

const Library& cublas_library();
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtCreate);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtDestroy);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtGetStatusString);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtGetVersion);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmul);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulAlgoGetHeuristic);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulDescCreate);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulDescDestroy);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulDescSetAttribute);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulPreferenceCreate);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulPreferenceDestroy);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatmulPreferenceSetAttribute);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatrixLayoutCreate);
TRIREME_LIBRARY_FUNCTION(cublas_library, cublasLtMatrixLayoutDestroy);

const Library& cudnn_library();
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendCreateDescriptor);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendDestroyDescriptor);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendExecute);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendFinalize);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendGetAttribute);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnBackendSetAttribute);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnCreate);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnDestroy);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnGetErrorString);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnGetVersion);
TRIREME_LIBRARY_FUNCTION(cudnn_library, cudnnSetStream);

// Error(failed), with the library's explanation, if a call did not succeed.
void check(cudaError_t code, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

}  // namespace trireme::cuda
