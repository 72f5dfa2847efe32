// What the commands below `trireme data` share. Each add_* declares one and returns what to do when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "cli/commands.hpp"

namespace trireme::cli {

Command add_data_make(CLI::App& parent);
Command add_data_convert(CLI::App& parent);
Command add_data_inspect(CLI::App& parent);
Command add_data_verify(CLI::App& parent);

// --threads, with the usable cores where it is not given.
void add_threads_option(CLI::App& app, int& threads);
int threads_or_cores(int threads);

// "1 sample", "2,000 samples".
std::string counted(std::int64_t count, const std::string& one, const std::string& several);

// "writing: 45 %" on a terminal, on one line; nothing where stderr is a file. `trireme eval` has one too.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  std::function<void(std::int64_t done, std::int64_t all)> handler();

 private:
  std::string what_;
  bool is_terminal_;
  std::mutex mutex_;
  std::int64_t shown_ = -1;  // per cent
};

}  // namespace trireme::cli
