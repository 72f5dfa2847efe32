// What the user sees of a job: the lines of all tasks, whole and each with its task in front, the launcher's own
// messages, and below them the progress bar of the first task. Also keeps the tasks' output in files where asked to.
// Owned by the Supervisor, which polls descriptor() and calls flush(); nothing here waits for a slow reader.
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

// The text of one stream of one task, cut into lines. Carriage returns overwrite, as on a terminal: what a progress bar
// draws again and again is one line, of which the last state counts.
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

struct ConsoleOptions {
  int out = 1, err = 2;       // descriptors
  std::string output_folder;  // empty: none
};

class Console {
 public:
  // Makes the files: Error(bad_input) where that is impossible.
  Console(const JobDescription& job, const ConsoleOptions& options);

  bool shows_bar() const { return shows_bar_; }  // of the first task: the launcher's stderr is a terminal
  void add_output(int task, int stream, std::string_view text);  // stream: 1 stdout, 2 stderr
  void finish(int task);                                         // nothing more comes from it
  // An error in the task's own words: into its file only; the supervisor decides what the user sees.
  void keep_error(int task, std::string_view text);
  void say(const std::string& text);  // the launcher's own line, on stderr

  int descriptor() const;                     // to be polled for writing; -1: everything is written
  void flush();                               // what can be written without waiting
  bool is_full() const;                       // the reader is slow: let the tasks wait
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
  void keep(int task, int stream, std::string_view text);  // in its file, where there is one
  void show_line(int task, int stream, const std::string& line);
  void write(int descriptor, std::string text);
  void hide_bar();
  void show_bar();
  bool write_first_chunk();

  const JobDescription& job_;
  ConsoleOptions options_;
  bool shows_bar_;
  bool out_is_terminal_;  // which goes away with a signal, or is to be outlived (nohup)
  std::vector<TaskOutput> tasks_;
  std::deque<Chunk> unwritten_;
  std::size_t unwritten_bytes_ = 0;
  std::string bar_;  // as drawn; empty: none
  bool broken_ = false;
};

}  // namespace trireme::cluster
