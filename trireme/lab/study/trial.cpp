#include "trireme/lab/study/trial.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/shell_text.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::lab {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
constexpr auto kTick = 500ms;
constexpr auto kLookAtLoad = 100ms;  // ticks of 10 ms
constexpr std::size_t kLongestReason = 500;

UniqueFd open_for_writing(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) fail(ErrorKind::failed, "cannot write '{}': {}", path, std::strerror(errno));
  return file;
}

// Why a trial was ended; none: it ended itself.
enum class Reason : std::uint8_t { none, limit, stop };

class RunningTrial {
 public:
  RunningTrial(const TrialRequest& request, const cluster::ChildOptions& options)
      : request_(request), wake_(eventfd(0, EFD_CLOEXEC)), process_(options) {}

  cluster::Ending wait(const std::stop_token& stop) {
    const std::stop_callback waker(stop, [this] { eventfd_write(wake_.get(), 1); });
    SteadyClock::time_point asked{};
    for (;;) {
      if (const auto ending = process_.try_wait()) {
        process_.signal_group(SIGKILL);  // leftover processes
        return *ending;
      }
      if (reason_ == Reason::none && (stop.stop_requested() || seconds() > request_.limit_seconds)) {
        end_for(stop.stop_requested() ? Reason::stop : Reason::limit);
        asked = SteadyClock::now();
      }
      if (reason_ != Reason::none && seconds_since(asked) > request_.grace_seconds) process_.signal_group(SIGKILL);
      sleep();
      if (request_.while_running) request_.while_running(seconds());
    }
  }

  double seconds() const { return seconds_since(start_); }
  Reason reason() const { return reason_; }

 private:
  // Until the process has ended, a stop is requested, or some time has passed.
  void sleep() const {
    std::array<pollfd, 2> events{{{process_.poll_descriptor(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    poll(events.data(), reason_ == Reason::none ? 2 : 1, static_cast<int>(std::chrono::milliseconds(kTick).count()));
  }

  void end_for(Reason reason) {
    reason_ = reason;
    process_.signal_group(SIGTERM);
  }

  const TrialRequest& request_;
  UniqueFd wake_;
  SteadyClock::time_point start_ = SteadyClock::now();
  cluster::ChildProcess process_;
  Reason reason_ = Reason::none;
};

bool is_launch(const std::vector<std::string>& command) { return command.size() > 1 && command[1] == "launch"; }

// A launch's first worker may be on another host, so its output is read from where the launch keeps it.
std::vector<std::string> with_kept_output(std::vector<std::string> command, const std::string& folder) {
  if (is_launch(command)) command.insert(command.begin() + 2, {"--output-dir", folder});
  return command;
}

std::string printed_record(const TrialRequest& request) {
  const fs::path folder = request.scratch_folder;
  if (!is_launch(request.command)) return read_text(folder / "out");
  for (const char* name : {"rank-0.out", "worker-0.out"}) {
    if (fs::exists(folder / name)) return read_text(folder / name);
  }
  return "";
}

// The trial's own message: the line with "error:", or else its last one.
std::string complaint(const std::string& log) {
  std::string last, line;
  for (std::size_t begin = 0; begin < log.size(); begin += line.size() + 1) {
    line = log.substr(begin, log.find('\n', begin) - begin);
    constexpr std::string_view kMark = "error: ";
    if (const std::size_t mark = line.find(kMark); mark != std::string::npos) return line.substr(mark + kMark.size());
    if (!line.empty()) last = line;
  }
  return last;
}

std::string shortened(std::string text) {
  if (text.size() > kLongestReason) text = text.substr(0, kLongestReason) + " ...";
  return text;
}

std::string failure_text(const TrialRequest& request, const cluster::Ending& ending, Reason reason) {
  if (reason == Reason::limit) return fmt::format("ran longer than the limit of {:g} s", request.limit_seconds);
  const std::string said = complaint(read_text(request.log_file));
  if (ending.signal != 0) return said.empty() ? ending_text(ending) : fmt::format("{}: {}", ending_text(ending), said);
  if (ending.is_success()) return "wrote no complete record";
  return said.empty() ? ending_text(ending) : said;
}

bool is_measured(const Json& record) {
  return report::text_field(record, {"schema"}) == report::kRunSchema && !has_failed(record) &&
         !record.contains("interrupted") && images_per_second(record) > 0;
}

Json failure_record(Json printed, const TrialRequest& request, const std::string& started, const std::string& error) {
  if (report::text_field(printed, {"schema"}) != report::kRunSchema) {
    printed = {
        {"schema", report::kRunSchema}, {"command", request.command}, {"started", started}, {"results", nullptr}};
  }
  if (!has_failed(printed)) printed["error"] = shortened(error);
  return printed;
}

// The trial's folder, removed with this object.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& path) : path_(path) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;  // the next trial tries again
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

 private:
  fs::path path_;
};

}  // namespace

bool has_failed(const Json& record) { return !report::field(record, {"error"}).is_null(); }

double images_per_second(const Json& record) {
  return report::number_field(record, {"results", "images_per_second"}).value_or(0);
}

std::vector<std::string> trial_command(const std::string& program, std::vector<std::string> words) {
  words.insert(words.begin(), program);
  words.insert(words.end(), {"--record", "-"});
  return words;
}

TrialResult run_trial(const TrialRequest& request, std::stop_token stop) {
  const ScratchFolder scratch(request.scratch_folder);
  const UniqueFd log = open_for_writing(request.log_file);
  const UniqueFd out = open_for_writing(request.scratch_folder + "/out");
  const std::string started = report::rfc3339(std::chrono::system_clock::now());
  const double load = perf::current_load(kLookAtLoad);
  RunningTrial trial(request, {.command = with_kept_output(request.command, request.scratch_folder),
                               .environment = {{perf::kLoadVariable, fmt::format("{:.2f}", load)}},
                               .out = out.get(),
                               .err = log.get()});
  const cluster::Ending ending = trial.wait(stop);
  TrialResult result{
      .ending = TrialResult::Ending::measured, .record = {}, .seconds = trial.seconds(), .load_before = load};
  if (trial.reason() == Reason::stop) {
    result.ending = TrialResult::Ending::interrupted;
    return result;
  }
  result.record = Json::parse(printed_record(request), nullptr, false);
  if (!ending.is_success() || trial.reason() == Reason::limit || !is_measured(result.record)) {
    result.ending = TrialResult::Ending::failed;
    result.error = error_kind(ending.exit_code());
    result.record =
        failure_record(std::move(result.record), request, started, failure_text(request, ending, trial.reason()));
  }
  return result;
}

}  // namespace trireme::lab
