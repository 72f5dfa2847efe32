// The text of one stream of one task, cut into lines. Carriage returns overwrite, as on a terminal: what a progress bar
// draws again and again is one line, of which the last state counts. Used by the Console.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trireme::cluster {

class LineBuffer {
 public:
  using OnLine = std::function<void(const std::string& line)>;  // without its end

  void append(std::string_view text, const OnLine& on_line);
  void finish(const OnLine& on_line);  // an unfinished line is one too
  // What a bar shows at the moment; empty: there is none.
  std::string bar() const;

 private:
  void end_line(const OnLine& on_line);

  std::string line_;
  bool returned_ = false;     // a carriage return came: what comes next overwrites
  bool overwritten_ = false;  // the line is what a bar has drawn
};

}  // namespace trireme::cluster
