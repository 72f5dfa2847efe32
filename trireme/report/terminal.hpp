// A line of the terminal that is drawn over: progress of benchmarks, trainings, sweeps and tunes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace trireme::report {

class TerminalLine {
 public:
  explicit TerminalLine(std::FILE* terminal) : terminal_(terminal) {}  // none: nothing may be drawn

  bool has_terminal() const { return terminal_ != nullptr; }
  bool is_drawn() const { return is_drawn_; }
  // The longest text that fits: a longer one could not be drawn over.
  std::size_t columns() const;
  void draw(const std::string& text);
  void erase();

 private:
  std::FILE* terminal_;
  bool is_drawn_ = false;
};

}  // namespace trireme::report
