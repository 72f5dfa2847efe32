#include "trireme/cluster/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>

#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kSettling = 200ms;          // failures that arrive together belong together
constexpr auto kSettlingAtStart = 1500ms;  // mpirun takes this long to say whom it has lost
constexpr auto kKilling = 500ms;           // for the runners to say that it is done
constexpr auto kStartersLeave = 5s;        // after all tasks have ended well
constexpr auto kNoDeadline = std::chrono::hours(24 * 365);

// What a launcher printed, in one line, without the frames around it.
std::string condensed(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  for (std::string word; words >> word;) {
    if (word.find_first_not_of('-') == std::string::npos) continue;
    result += (result.empty() ? "" : " ") + word;
  }
  return result;
}

bool is_asked_for(const Ending& ending) {
  const int code = ending.exit_code();
  return code == 0 || code == kInterruptedCode || code == 128 + SIGTERM || code == 128 + SIGHUP;
}

}  // namespace

Supervisor::Supervisor(Job job, const Starter& starter, const SupervisorOptions& options)
    : job_(std::move(job)),
      options_(options),
      console_(job_, options.console),
      guard_(options.program, listener_.address()),
      tasks_(job_.tasks.size()),
      deadline_(Clock::now() + options.start_timeout) {
  start(starter(job_, guard_.folder()));
}

void Supervisor::start(const std::vector<StartCommand>& commands) {
  for (const StartCommand& command : commands) {
    PipeEnds output = make_pipe();
    auto environment = command.environment;
    environment[kLaunchVariable] = listener_.address();
    ChildProcess process({.command = command.command,
                          .environment = environment,
                          .dropped_variables = command.dropped_variables,
                          .out = output.write.get(),
                          .err = output.write.get()});
    fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
    starters_.push_back({command, std::move(process), std::move(output.read), "", false});
  }
}

int Supervisor::run() {
  while (phase_ != Phase::over) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    wait_for_events(std::clamp<std::chrono::milliseconds>(left, 0ms, 1h));
    advance();
  }
  finish();
  if (!failures_.empty()) return failures_.first().exit_code;
  return interrupted_ ? kInterruptedCode : 0;
}

void Supervisor::wait_for_events(std::chrono::milliseconds timeout) {
  struct Source {
    pollfd polled;
    std::function<void()> handle;
  };
  std::vector<Source> sources;
  const auto add = [&](int descriptor, int events, std::function<void()> handle) {
    if (descriptor >= 0) sources.push_back({{descriptor, static_cast<short>(events), 0}, std::move(handle)});
  };
  add(end_requests_.descriptor(), POLLIN, [this] { handle_end_request(end_requests_.next()); });
  add(console_.descriptor(), POLLOUT, [] {});
  add(listener_.descriptor(), POLLIN, [this] { accept_runners(); });
  const int input = console_.is_full() ? 0 : POLLIN;
  for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
    if (!state(task).channel) continue;
    const Channel& channel = *state(task).channel;
    add(channel.descriptor(), input | (channel.unsent_bytes() > 0 ? POLLOUT : 0), [this, task] { listen_to(task); });
  }
  for (const Channel& newcomer : newcomers_) add(newcomer.descriptor(), POLLIN, [] {});
  for (StarterState& starter : starters_) {
    if (starter.over) continue;
    add(starter.output.get(), POLLIN, [this, &starter] { listen_to(starter); });
    add(starter.process.poll_descriptor(), POLLIN, [this, &starter] { listen_to(starter); });
  }
  std::vector<pollfd> polled;
  for (const Source& source : sources) polled.push_back(source.polled);
  if (poll(polled.data(), polled.size(), static_cast<int>(timeout.count())) < 0) return;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (polled[i].revents != 0) sources[i].handle();
  }
  for (Channel& newcomer : newcomers_) listen_to(newcomer);
  std::erase_if(newcomers_, [](const Channel& newcomer) { return newcomer.descriptor() < 0; });
  console_.flush();
}

void Supervisor::accept_runners() {
  if (UniqueFd accepted = listener_.accept(); accepted.is_open()) newcomers_.emplace_back(std::move(accepted));
}

// A newcomer that has said who it is, or that is none of ours, is moved away and leaves a closed channel behind.
void Supervisor::listen_to(Channel& newcomer) {
  std::vector<json> messages;
  const bool open = newcomer.receive(messages);
  if (messages.empty() && open) return;
  Channel channel = std::move(newcomer);
  if (!messages.empty() && open) greet(std::move(channel), messages.front());
}

void Supervisor::greet(Channel channel, const json& hello) {
  const int task = hello.value("task", -1);
  if (hello["type"] != "hello" || task < 0 || task >= static_cast<int>(tasks_.size())) return;
  TaskState& greeted = state(task);
  if (greeted.channel || greeted.over || phase_ != Phase::starting) return;
  greeted.host = hello.value("host", "unknown host");
  greeted.channel.emplace(std::move(channel));
}

void Supervisor::listen_to(int task) {
  if (!state(task).channel) return;
  state(task).channel->flush();
  std::vector<json> messages;
  const bool open = state(task).channel->receive(messages);
  for (const json& message : messages) handle(task, message);
  if (!open && !state(task).over) lose(task);
  if (!open) state(task).channel.reset();
}

void Supervisor::handle(int task, const json& message) {
  const std::string type = message.at("type");
  if (type == "output") {
    console_.add_output(task, message.at("stream"), message.at("text").get_ref<const std::string&>());
  } else if (type == "started") {
    state(task).pid = message.at("pid");
  } else if (type == "not_started") {
    state(task).over = true;
    fail_job({Cause::not_started, task, full_name(task), ": " + message.at("reason").get<std::string>(), 127});
  } else if (type == "error") {
    const std::string text = message.at("text");
    console_.keep_error(task, text);
    fail_job({Cause::error, task, full_name(task), ": " + text, message.at("code")});
  } else if (type == "stopped") {
    state(task).stopped_by = message.at("signal");
    console_.say(fmt::format("trireme: {} was stopped by {}", full_name(task), signal_text(state(task).stopped_by)));
  } else if (type == "continued") {
    state(task).stopped_by = 0;
    console_.say(fmt::format("trireme: {} goes on", full_name(task)));
  } else if (type == "ended") {
    handle_ended(task, {.code = message.at("code"), .signal = message.at("signal")});
  }
}

void Supervisor::handle_ended(int task, const Ending& ending) {
  state(task).over = true;
  console_.finish(task);
  if (ending.is_success()) state(task).channel->send({{"type", "release"}});
  if (ending.is_success() || (interrupted_ && is_asked_for(ending))) return;
  if (phase_ >= Phase::ending) return;  // by our request
  if (ending.signal != 0) {
    fail_job(
        {Cause::killed, task, full_name(task), " was killed by " + signal_text(ending.signal), ending.exit_code()});
  } else {
    fail_job({Cause::error, task, full_name(task), fmt::format(" ended with exit code {}", ending.code), ending.code});
  }
}

void Supervisor::lose(int task) {
  state(task).over = true;
  console_.finish(task);
  if (phase_ >= Phase::ending) return;
  fail_job({Cause::lost, task, full_name(task), " was lost: its connection ended without a word", 1});
}

void Supervisor::listen_to(StarterState& starter) {
  if (starter.over) return;
  const auto ending = starter.process.try_wait();  // asked first: what it has said is complete then
  std::array<char, 4096> chunk{};
  ssize_t count = 0;
  while ((count = read(starter.output.get(), chunk.data(), chunk.size())) > 0) {
    starter.said.append(chunk.data(), static_cast<std::size_t>(count));
  }
  if (count == 0) starter.output.reset();
  if (!ending) return;
  starter.over = true;
  const bool was_needed = std::any_of(starter.start.tasks.begin(), starter.start.tasks.end(),
                                      [this](int task) { return !state(task).over; });
  if (was_needed) {
    const bool at_start = !missing_tasks().empty();
    fail_job({at_start ? Cause::not_started : Cause::starter_ended, -1, starter.start.name,
              starter_text(starter, *ending), std::max(1, ending->exit_code())});
  }
}

std::string Supervisor::starter_text(const StarterState& starter, const Ending& ending) const {
  std::string text = ending.signal != 0 ? fmt::format(" was killed by {}", signal_text(ending.signal))
                                        : fmt::format(" ended with exit code {}", ending.code);
  if (const auto missing = missing_tasks(); !missing.empty()) {
    text += fmt::format(" before {} had reported", names(job_, missing));
  }
  if (const std::string said = condensed(starter.said); !said.empty()) text += ": " + said;
  return text;
}

// The first time the tasks are asked to end by themselves, with their results; the second time they are killed.
void Supervisor::handle_end_request(int signal) {
  if (signal == 0) return;
  if (phase_ == Phase::over) {
    abandoned_ = true;
    return;
  }
  const bool again = interrupted_ || is_failing() || phase_ == Phase::starting;
  interrupted_ = interrupted_ || failures_.empty();
  if (again) return begin_killing();
  // On a terminal "^C" stands at the beginning of the line.
  console_.say(fmt::format("{}trireme: interrupted: the workers end after this step (once more to end at once)",
                           console_.shows_bar() ? "\n" : ""));
  tell_all({{"type", "signal"}, {"signal", signal}});
}

void Supervisor::fail_job(Failure failure) {
  if (phase_ >= Phase::ending && failures_.empty()) return;  // the user has ended it
  const bool is_origin = failure.cause == Cause::not_started;
  failures_.add(std::move(failure));
  if (!is_failing()) begin_settling();
  if (is_origin && phase_ == Phase::settling) deadline_ = Clock::now();
}

void Supervisor::begin_settling() {
  deadline_ = Clock::now() + (phase_ == Phase::starting ? kSettlingAtStart : kSettling);
  phase_ = Phase::settling;
}

void Supervisor::advance() {
  const bool late = Clock::now() >= deadline_;
  if (console_.is_broken() && phase_ < Phase::settling) {
    fail_job({Cause::error, -1, "standard output", ": nobody reads it any more", 128 + SIGPIPE});
  }
  if (phase_ == Phase::starting) {
    if (missing_tasks().empty()) {
      run_tasks();
    } else if (late) {
      fail_job({Cause::not_started, -1, names(job_, missing_tasks()),
                fmt::format(" did not report within {} s of the start",
                            std::chrono::duration_cast<std::chrono::seconds>(options_.start_timeout).count()),
                1});
    }
  }
  if (phase_ == Phase::running && all_tasks_over()) phase_ = Phase::over;
  if (phase_ == Phase::settling && (late || all_tasks_over())) begin_ending();
  if (phase_ == Phase::ending && Clock::now() >= deadline_) begin_killing();
  if (phase_ >= Phase::ending && (!any_task_runs() || Clock::now() >= deadline_)) phase_ = Phase::over;
}

void Supervisor::run_tasks() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].channel->send({{"type", "run"}, {"task", to_json(job_.tasks[i])}});
  }
  phase_ = Phase::running;
  deadline_ = Clock::now() + kNoDeadline;
}

void Supervisor::begin_ending() {
  failures_.settle();
  std::string text = failures_.first().who + failures_.first().what;
  for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
    if (state(task).stopped_by != 0 && !state(task).over) {
      text += fmt::format("; {} is stopped ({})", full_name(task), signal_text(state(task).stopped_by));
    }
  }
  console_.say(fmt::format("trireme: error: {}", text));
  phase_ = Phase::ending;
  deadline_ = Clock::now() + options_.grace;
  tell_all({{"type", "signal"}, {"signal", SIGTERM}});
}

void Supervisor::begin_killing() {
  if (phase_ == Phase::settling) begin_ending();
  const bool nothing_runs = phase_ == Phase::starting;
  phase_ = nothing_runs ? Phase::over : Phase::killing;
  killed_ = true;
  deadline_ = Clock::now() + kKilling;
  tell_all({{"type", "signal"}, {"signal", SIGKILL}});
}

void Supervisor::tell_all(const json& message) {
  for (TaskState& task : tasks_) {
    if (task.channel && !task.over) task.channel->send(message);
  }
}

// After a failure mpirun and its kind are simply ended (by the guard, with everything else): they would complain.
void Supervisor::finish() {
  for (TaskState& task : tasks_) {
    if (task.channel) task.channel->send({{"type", "release"}});
  }
  deadline_ = Clock::now() + kStartersLeave;
  const auto starters_are_here = [this] {
    return std::any_of(starters_.begin(), starters_.end(), [](const StarterState& starter) { return !starter.over; });
  };
  while (failures_.empty() && !killed_ && starters_are_here() && Clock::now() < deadline_) wait_for_events(100ms);
  for (const std::string& text : failures_.empty() ? std::vector<std::string>{} : failures_.others()) {
    console_.say(fmt::format("trireme: after that, {}", text));
  }
  while (console_.descriptor() >= 0 && !abandoned_) wait_for_events(1h);
}

bool Supervisor::all_tasks_over() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const TaskState& task) { return task.over; });
}

bool Supervisor::any_task_runs() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const TaskState& task) { return task.channel.has_value() && task.pid != 0 && !task.over; });
}

std::vector<int> Supervisor::missing_tasks() const {
  std::vector<int> missing;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].channel && !tasks_[i].over) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

std::string Supervisor::full_name(int task) const {
  const TaskState& named = tasks_[static_cast<std::size_t>(task)];
  const std::string pid = named.pid != 0 ? fmt::format(", pid {}", named.pid) : "";
  return fmt::format("{} ({}{})", job_.name(task), named.host, pid);
}

}  // namespace trireme::cluster
