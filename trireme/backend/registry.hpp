// The backends of this build, by name. The one place that knows which were compiled in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

class Backend;
struct TuningOptions;

// "reference" and, where found when building, "onednn" and "cuda"; "cuda:1" is the second GPU. An unknown name is
// Error(bad_input) that lists them, and so is a GPU that is not there.
// Where a backend has several kernels for an operation, tuning (backend/tuner.hpp) says how it chooses.
std::shared_ptr<Backend> make_backend(std::string_view name);
std::shared_ptr<Backend> make_backend(std::string_view name, TuningOptions tuning);
// Those that run on this machine.
std::vector<std::string> backend_names();
// That this process can use.
int gpu_count();
// The fastest one for this machine's CPU.
std::string default_backend();
// Name and version, at run time, of the libraries that the backends of this build use.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace trireme
