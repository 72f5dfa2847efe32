// A job's output: complete lines prefixed with their task, the launcher's messages, and the first task's progress bar;
// optionally also files. Owned by the Supervisor, which polls descriptor() and calls flush(). Never blocks.
#pragma once

#include <array>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/job_description.hpp"

namespace trireme::cluster {

// Cuts a stream into lines. Carriage returns overwrite: a redrawn progress bar is one line in its last state.
class LineBuffer {
 public:
  using OnLine = std::function<void(const std::string& line)>;  // without its newline

  void append(std::string_view text, const OnLine& on_line);
  void finish(const OnLine& on_line);  // also emits an unfinished line
  std::string bar() const;             // empty: no progress bar

 private:
  void end_line(const OnLine& on_line);

  std::string line_;
  bool returned_ = false;     // a carriage return came: the next text overwrites
  bool overwritten_ = false;  // the line was drawn by a bar
};

struct ConsoleOptions {
  int out = 1, err = 2;       // descriptors
  std::string output_folder;  // empty: none
};

class Console {
 public:
  Console(const JobDescription& job, const ConsoleOptions& options);  // Error(bad_input) if files cannot be made

  bool shows_bar() const { return shows_bar_; }                  // if the launcher's stderr is a terminal
  void add_output(int task, int stream, std::string_view text);  // stream: 1 stdout, 2 stderr
  void finish(int task);                                         // its output is complete
  // A task's error message: written only to its file; the supervisor decides what the user sees.
  void keep_error(int task, std::string_view text);
  void say(const std::string& text);  // the launcher's own line, on stderr

  int descriptor() const;                     // to poll for writing; -1: everything is written
  void flush();                               // writes what it can without blocking
  bool is_full() const;                       // the reader is slow: stop reading from tasks
  bool is_broken() const { return broken_; }  // the reader of stdout is gone

 private:
  struct TaskOutput {
    std::array<LineBuffer, 2> lines;
    std::array<std::ofstream, 2> files;
  };
  struct Chunk {
    int descriptor;
    std::string text;
  };
  void keep(int task, int stream, std::string_view text);  // in its file, if any
  void show_line(int task, int stream, const std::string& line);
  void write(int descriptor, std::string text);
  void hide_bar();
  void show_bar();
  bool write_first_chunk();

  const JobDescription& job_;
  ConsoleOptions options_;
  bool shows_bar_;
  bool out_is_terminal_;  // its end comes as a signal, or is ignored (nohup)
  std::vector<TaskOutput> tasks_;
  std::deque<Chunk> unwritten_;
  std::size_t unwritten_bytes_ = 0;
  std::string bar_;  // as drawn; empty: none
  bool broken_ = false;
};

}  // namespace trireme::cluster
