#include "trireme/base/error.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace trireme {
namespace {

bool has_colors() {
  const char *refused = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(STDERR_FILENO) != 0;
}

}  // namespace

void log_line(const std::string& text) noexcept {
  const std::size_t word = text.starts_with("error: ") ? 6 : text.starts_with("warning: ") ? 8 : 0;
  if (word > 0 && has_colors()) {
    std::fprintf(stderr, "trireme: \x1b[1;%sm%.*s\x1b[0m%s\n", word == 6 ? "31" : "33", static_cast<int>(word),
                 text.c_str(), text.c_str() + word);
  } else {
    std::fprintf(stderr, "trireme: %s\n", text.c_str());
  }
}

}  // namespace trireme
