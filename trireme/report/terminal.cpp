#include "trireme/report/terminal.hpp"

#include <sys/ioctl.h>

namespace trireme::report {

std::size_t columns_of(std::FILE* terminal) {
  winsize size{};
  const bool is_known = ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1u : 79u;
}

}  // namespace trireme::report
