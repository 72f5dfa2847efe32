// `trireme data`: makes, converts, inspects and verifies data sets.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "cli/checks.hpp"
#include "cli/data_parts.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::cli {

void add_threads_option(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "Threads to use (default: one per usable core)")->check(whole_number(1, 1024));
}

int threads_or_cores(int threads) { return threads > 0 ? threads : std::max(1, perf::read_machine(0).usable_cores); }

std::string counted(std::int64_t count, const std::string& one, const std::string& several) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : several);
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), line_(cluster::shows_progress() ? stderr : nullptr) {}

ProgressLine::~ProgressLine() { line_.erase(); }

std::function<void(std::int64_t done, std::int64_t all)> ProgressLine::handler() {
  return [this](std::int64_t done, std::int64_t all) {
    if (!line_.has_terminal() || done == 0) return;
    const std::lock_guard lock(mutex_);
    if (100 * done / all <= shown_) return;
    shown_ = 100 * done / all;
    const double seconds_each = seconds_since(started_) / static_cast<double>(done);
    const std::string left = lab::time_left_text(seconds_each * static_cast<double>(all - done));
    line_.draw(fmt::format("{}: {} %, {}", what_, shown_, left));
  };
}

Command add_data(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("data", "Make, convert, inspect and check data sets");
  app->require_subcommand(0, 1);
  const auto commands = std::make_shared<std::vector<Command>>();
  *commands = {add_data_make(*app), add_data_convert(*app), add_data_inspect(*app), add_data_verify(*app)};
  return {app, [commands] {
            const auto chosen =
                std::ranges::find_if(*commands, [](const Command& command) { return command.app->parsed(); });
            if (chosen == commands->end())
              bad_input("data: missing command; use make, convert, inspect or verify. See trireme data --help");
            return chosen->run();
          }};
}

}  // namespace trireme::cli
