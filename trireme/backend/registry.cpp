#include "trireme/backend/registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "trireme/backend/backends.hpp"
#include "trireme/features.hpp"
#if TRIREME_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace trireme {

std::vector<std::string> backend_names() {
  std::vector<std::string> names{default_backend()};
  if (names.front() != "reference") names.emplace_back("reference");
  if (gpu_count() > 0) names.emplace_back("cuda");
  return names;
}

int gpu_count() {
  if constexpr (TRIREME_WITH_CUDA) return cuda::find_gpus().count;
  return 0;
}

std::string default_backend() { return TRIREME_WITH_ONEDNN ? "onednn" : "reference"; }

std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
#if TRIREME_WITH_ONEDNN
  const dnnl_version_t* onednn = dnnl_version();
  versions.emplace_back("oneDNN", fmt::format("{}.{}.{}", onednn->major, onednn->minor, onednn->patch));
#endif
  if constexpr (TRIREME_WITH_CUDA) {
    for (auto& version : cuda::library_versions()) versions.push_back(std::move(version));
  }
  return versions;
}

namespace {

std::unique_ptr<Backend> make_cuda_backend(std::string_view name, TuningOptions tuning) {
  if constexpr (TRIREME_WITH_CUDA) {
    const std::string_view number = name.substr(std::min(name.size(), std::string_view("cuda:").size()));
    int gpu = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), gpu);
    if (name != "cuda" && (error != std::errc() || end != number.data() + number.size())) {
      bad_input("--device {}: give the number of a GPU, as in cuda:0", name);
    }
    return cuda::make_backend(std::move(tuning), gpu);
  }
  fail(ErrorKind::unavailable,
       "--device cuda: this build has no CUDA; build trireme with the CUDA toolkit and cuDNN (docs/gpu.md)");
}

}  // namespace

std::shared_ptr<Backend> make_backend(std::string_view name) { return make_backend(name, {}); }

std::shared_ptr<Backend> make_backend(std::string_view name, TuningOptions tuning) {
  if constexpr (TRIREME_WITH_ONEDNN) {
    if (name == "onednn") return onednn::make_backend(std::move(tuning));
  }
  if (name.starts_with("cuda")) return make_cuda_backend(name, std::move(tuning));
  if (name == "reference") return reference::make_backend();
  bad_input("unknown backend '{}'; this build has: {}", name, fmt::join(backend_names(), ", "));
}

}  // namespace trireme
