// The backends of this build, by name. The one place that knows which were compiled in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/backend.hpp"

namespace trireme {

// "reference" and, where found when building, "onednn". An unknown name is Error(bad_input) that lists them.
std::unique_ptr<Backend> make_backend(std::string_view name);
std::vector<std::string> backend_names();
// The fastest one for this machine's CPU.
std::string default_backend();

}  // namespace trireme
