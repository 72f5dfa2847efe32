#include "trireme/backend/registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/backend/reference/backend.hpp"
#include "trireme/base/error.hpp"
#ifdef TRIREME_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include "trireme/backend/onednn/backend.hpp"
#endif

namespace trireme {

std::vector<std::string> backend_names() {
  return {
#ifdef TRIREME_WITH_ONEDNN
      "onednn",
#endif
      "reference",
  };
}

std::string default_backend() { return backend_names().front(); }

std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
#ifdef TRIREME_WITH_ONEDNN
  const dnnl_version_t* onednn = dnnl_version();
  versions.emplace_back("oneDNN", fmt::format("{}.{}.{}", onednn->major, onednn->minor, onednn->patch));
#endif
  return versions;
}

std::unique_ptr<Backend> make_backend(std::string_view name, [[maybe_unused]] TuningOptions tuning) {
#ifdef TRIREME_WITH_ONEDNN
  if (name == "onednn") return onednn::make_backend(std::move(tuning));
#endif
  if (name == "reference") return reference::make_backend();
  bad_input("unknown backend '{}'; this build has: {}", name, fmt::join(backend_names(), ", "));
}

}  // namespace trireme
