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
#include "trireme/base/json.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/train/facts.hpp"

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
  const std::string message = complaint(read_text(request.log_file));
  if (ending.signal != 0)
    return message.empty() ? ending_text(ending) : fmt::format("{}: {}", ending_text(ending), message);
  if (ending.is_success()) return "wrote no complete record";
  return message.empty() ? ending_text(ending) : message;
}

// What it has written, maybe nothing or half of it.
record::RunRecord written_record(const std::string& path) {
  record::RunRecord record;
  record.schema.clear();
  read(Json::parse(read_text(path), nullptr, false), record);
  return record;
}

bool is_measured(const record::RunRecord& record) {
  return record.schema == record::kRunSchema && !record.error && !record.interrupted && record.images_per_second() > 0;
}

record::RunRecord failure_record(record::RunRecord written, const TrialRequest& request, const std::string& started,
                                 const std::string& error) {
  if (written.schema != record::kRunSchema) {
    written = {};
    written.command = request.command;
    written.started = started;
  }
  if (!written.error) written.error = shortened(error);
  return written;
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

// As it reads back from a file.
std::string kept_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Adds "study", with the run's duration, and the machine if missing: another framework, or a run that failed early.
void complete_record(TrialResult& trial, record::StudyRun study) {
  record::Machine& machine = trial.record.machine;
  if (machine.host.empty()) {  // of another framework, which may know its GPU
    Json gpu = std::move(machine.gpu);
    machine = train::this_machine(trial.load_before);
    machine.gpu = std::move(gpu);
  }
  study.seconds = trial.seconds;
  trial.record.study = std::move(study);
}

}  // namespace

TrialResult run_trial(const TrialRequest& request, std::stop_token stop) {
  const ScratchFolder scratch(request.scratch_folder);
  const UniqueFd log = open_for_writing(request.log_file);
  const std::string record_file = request.scratch_folder + "/record.json";
  const std::string started = record::rfc3339(std::chrono::system_clock::now());
  const double load = perf::current_load(kLookAtLoad);
  std::vector<std::string> command = request.command;
  command.insert(command.end(), {"--record", record_file});
  RunningTrial trial(request, {.command = command,
                               .environment = {{perf::kLoadVariable, fmt::format("{:.2f}", load)}},
                               .out = log.get(),
                               .err = log.get()});
  const cluster::Ending ending = trial.wait(stop);
  TrialResult result{
      .ending = TrialResult::Ending::measured, .record = {}, .seconds = trial.seconds(), .load_before = load};
  if (trial.reason() == Reason::stop) {
    result.ending = TrialResult::Ending::interrupted;
    return result;
  }
  result.record = written_record(record_file);
  if (!ending.is_success() || trial.reason() == Reason::limit || !is_measured(result.record)) {
    result.ending = TrialResult::Ending::failed;
    result.error = error_kind(ending.exit_code());
    result.record =
        failure_record(std::move(result.record), request, started, failure_text(request, ending, trial.reason()));
  }
  return result;
}

record::StudyRun identity_of(const StudyPlan& plan, const StudyCell& cell, int repeat) {
  return {.name = plan.name,
          .cell = cell.varied,
          .repeat = repeat,
          .framework = cell.framework.empty() ? "trireme" : cell.framework};
}

TrialResult run_into(const StudyFolder& folder, const RunName& name, TrialRequest request, record::StudyRun study,
                     std::stop_token stop) {
  folder.note("start " + to_string(name));
  request.scratch_folder = folder.scratch_folder();
  request.log_file = folder.log_file(name);
  TrialResult trial = run_trial(request, std::move(stop));
  if (trial.ending == TrialResult::Ending::interrupted) {
    folder.note("interrupted " + to_string(name));
    return trial;
  }
  complete_record(trial, std::move(study));
  folder.write_run(name, trial.record);
  folder.note(fmt::format("{} {}", trial.record.error ? "failed" : "measured", to_string(name)));
  return trial;
}

std::optional<record::RunRecord> find_record(const std::filesystem::path& folder, const RunName& run,
                                             const record::StudyRun& study) {
  auto record = read_run(folder, run);
  if (!record) return std::nullopt;
  constexpr const char* kAdvice = "move it elsewhere, or give another --out";
  const Json kept = record->study ? to_json(*record->study) : Json(), wanted = to_json(study);
  for (const auto& [key, expected] : wanted.items()) {
    const std::string found = kept_text(field(kept, {key.c_str()}));
    if (found == kept_text(expected)) continue;
    bad_input("{} is the record of another run: its study.{} is {}, not {}; {}", run_file(folder, run).string(), key,
              found, kept_text(expected), kAdvice);
  }
  if (!record->error && !(record->images_per_second() > 0)) {
    bad_input("{} has neither a speed nor an error; {}", run_file(folder, run).string(), kAdvice);
  }
  return record;
}

}  // namespace trireme::lab
