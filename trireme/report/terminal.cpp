#include "trireme/report/terminal.hpp"

#include <sys/ioctl.h>

namespace trireme::report {

void TerminalLine::draw(const std::string& text) {
  if (terminal_ == nullptr) return;
  winsize size{};
  const bool is_known = ioctl(fileno(terminal_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  // Erases to the end of the line, as the new text may be shorter. fmt::print would throw if the terminal was closed.
  std::fprintf(terminal_, "\r%.*s\x1b[K", is_known ? size.ws_col - 1 : 79, text.c_str());
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
