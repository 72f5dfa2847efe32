#include "trireme/base/cache_folder.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace trireme {

std::string cache_path(const std::string& file) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fmt::format("{}/trireme/{}", cache, file);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fmt::format("{}/.cache/trireme/{}", home, file);
  return "";
}

}  // namespace trireme
