#include "trireme/report/terminal.hpp"

#include <sys/ioctl.h>

namespace trireme::report {

std::size_t TerminalLine::columns() const {
  winsize size{};
  const bool is_known = ioctl(fileno(terminal_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1u : 79u;
}

void TerminalLine::draw(const std::string& text) {
  if (terminal_ == nullptr) return;
  // Erases to the end of the line, as the new text may be shorter. fmt::print would throw if the terminal was closed.
  std::fputs(("\r" + text + "\x1b[K").c_str(), terminal_);
  std::fflush(terminal_);
  is_drawn_ = true;
}

void TerminalLine::erase() {
  if (!is_drawn_) return;
  std::fputs("\r\x1b[K", terminal_);
  std::fflush(terminal_);
  is_drawn_ = false;
}

}  // namespace trireme::report
