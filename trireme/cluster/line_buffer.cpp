#include "trireme/cluster/line_buffer.hpp"

#include <cstddef>

namespace trireme::cluster {
namespace {

constexpr std::string_view kEraseToEnd = "\x1b[K";  // of the line: what is behind the text is never kept here
constexpr std::size_t kLongestLine = 1U << 20U;     // whoever writes no ends of lines must not fill the memory

std::string without_erasing(std::string line) {
  for (std::size_t at = line.find(kEraseToEnd); at != std::string::npos; at = line.find(kEraseToEnd, at)) {
    line.erase(at, kEraseToEnd.size());
  }
  return line;
}

}  // namespace

void LineBuffer::append(std::string_view text, const OnLine& on_line) {
  for (const char c : text) {
    if (c == '\n') {
      end_line(on_line);
    } else if (c == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      overwritten_ = overwritten_ || returned_;
      returned_ = false;
      line_ += c;
      if (line_.size() >= kLongestLine) end_line(on_line);
    }
  }
}

void LineBuffer::finish(const OnLine& on_line) {
  if (overwritten_ ? !bar().empty() : !line_.empty()) end_line(on_line);
}

std::string LineBuffer::bar() const { return overwritten_ ? without_erasing(line_) : ""; }

void LineBuffer::end_line(const OnLine& on_line) {
  on_line(overwritten_ ? without_erasing(line_) : line_);
  line_.clear();
  returned_ = overwritten_ = false;
}

}  // namespace trireme::cluster
