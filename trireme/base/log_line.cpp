#include "trireme/base/log_line.hpp"

#include <cstdio>

namespace trireme {

void log_line(const std::string& text) noexcept { std::fprintf(stderr, "trireme: %s\n", text.c_str()); }

}  // namespace trireme
