// A terminal line that is redrawn in place: progress of benchmarks, trainings, sweeps and tunes.
#pragma once

#include <cstdio>
#include <string>

namespace trireme::report {

class TerminalLine {
 public:
  explicit TerminalLine(std::FILE* terminal) : terminal_(terminal) {}  // null: draws nothing

  bool has_terminal() const { return terminal_ != nullptr; }
  bool is_drawn() const { return is_drawn_; }
  void draw(const std::string& text);  // cut to the terminal's width, as longer text could not be redrawn
  void erase();

 private:
  std::FILE* terminal_;
  bool is_drawn_ = false;
};

}  // namespace trireme::report
