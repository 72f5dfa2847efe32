// The backends of this build, by name. The only place that knows which were compiled in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

class Backend;
struct TuningOptions;

// "reference" and, if the build found them, "onednn" and "cuda" ("cuda:1": the second GPU). Error(bad_input) for an
// unknown name or GPU number, Error(unavailable) without CUDA or a GPU. tuning: how to choose between kernels.
std::shared_ptr<Backend> make_backend(std::string_view name);
std::shared_ptr<Backend> make_backend(std::string_view name, TuningOptions tuning);
// Those that run on this machine, the default first.
std::vector<std::string> backend_names();
int gpu_count();
// The fastest backend for the CPU.
std::string default_backend();
// Names and versions of the backends' libraries: oneDNN's as loaded, CUDA's as of the build.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace trireme
