// Shared by the subcommands of `trireme data`. Each add_* declares one and returns its action.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "cli/commands.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {

Command add_data_make(CLI::App& parent);
Command add_data_convert(CLI::App& parent);
Command add_data_inspect(CLI::App& parent);
Command add_data_verify(CLI::App& parent);

// --threads; the default is the number of usable cores.
void add_threads_option(CLI::App& app, int& threads);
int threads_or_cores(int threads);

std::string counted(std::int64_t count, const std::string& one, const std::string& several);  // "2,000 samples"

// "writing: 45 %, 3m20s left" on one terminal line; silent if stderr is not a terminal. Also used by `trireme eval`.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  std::function<void(std::int64_t done, std::int64_t all)> handler();

 private:
  std::string what_;
  report::TerminalLine line_;
  std::mutex mutex_;
  std::int64_t shown_ = -1;  // percent
  SteadyClock::time_point started_ = SteadyClock::now();
};

}  // namespace trireme::cli
