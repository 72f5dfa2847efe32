#include "trireme/cluster/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <functional>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/failure_log.hpp"
#include "trireme/cluster/host_link.hpp"
#include "trireme/cluster/signals.hpp"
#include "trireme/cluster/starter_process.hpp"
#include "trireme/cluster/task_states.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kSettling = 200ms;                     // failures that arrive together belong together
constexpr auto kSettlingAtStart = 1500ms;             // mpirun takes this long to say whom it has lost
constexpr auto kAnswering = HostLink::kSilence + 2s;  // for each host to answer or be given up
constexpr auto kKilling = 500ms;                      // for the runners to confirm
constexpr auto kStartersLeave = 5s;                   // after all tasks have ended well
constexpr auto kNoDeadline = std::chrono::hours(24 * 365);

bool is_asked_for(const Ending& ending) {
  const int code = ending.exit_code();
  return code == 0 || code == kInterruptedCode || code == 128 + SIGTERM || code == 128 + SIGHUP;
}

class Supervisor {
 public:
  Supervisor(JobDescription job, const Starter& starter, const SupervisorOptions& options);

  int run();

 private:
  enum class Phase {
    starting,  // runners connect
    running,
    leaving,   // the workers are done; the servers have not left yet
    settling,  // something failed; what arrives now may be its cause
    ending,    // the tasks have been asked to end
    killing,   // the runners have been told to kill
    over,
  };

  void wait_for_events(std::chrono::milliseconds timeout);
  void accept_runners();
  void listen_to(Channel& newcomer);
  void listen_to(int task);
  void greet(Channel channel, const std::vector<nlohmann::json>& messages);
  void handle(int task, const nlohmann::json& message);
  void write_record(int task, const std::string& text);
  void handle_ended(int task, const Ending& ending);
  void lose(int task, Cause cause, const std::string& reason);
  void listen_to(StarterProcess& starter);
  void handle_end_request(int signal);
  void ask_workers_to_end(int signal);

  void advance();  // from phase to phase, by events and by the clock
  void start(bool after_hosts);
  void run_tasks();
  void begin_leaving();
  void begin_settling();
  void ping_hosts();
  void begin_ending();
  void ask_to_end();
  void begin_killing();
  void fail_job(Failure failure);
  bool survives_failures() const;
  void go_on();
  std::vector<int> members();
  void finish();

  bool is_failing() const { return phase_ >= Phase::settling; }
  bool is_late() const { return SteadyClock::now() >= deadline_; }
  std::string starter_text(const StarterProcess& starter, const Ending& ending) const;

  JobDescription job_;
  const SupervisorOptions options_;
  Console console_;
  EndRequests end_requests_;
  Listener listener_;
  Guard guard_;  // before the starters: ends everything once they are done
  TaskStates tasks_;
  std::vector<StartCommand> to_start_;
  std::vector<StarterProcess> starters_;
  std::vector<Channel> newcomers_;  // connected, but not identified yet
  FailureLog failures_;
  Phase phase_ = Phase::starting;
  SteadyClock::time_point deadline_;               // of the phase
  SteadyClock::time_point answers_deadline_ = {};  // for hosts that do not answer while settling
  int epoch_ = 1;                                  // of the members, if they follow losses together
  bool started_ = false;                           // the tasks were told to run
  bool interrupted_ = false;                       // the workers were asked to end
  bool asked_here_ = false;                        // by a signal to this process
  bool killed_ = false;                            // the user did not want to wait
  bool abandoned_ = false;                         // not even for the rest of the output
};

Supervisor::Supervisor(JobDescription job, const Starter& starter, const SupervisorOptions& options)
    : job_(std::move(job)),
      options_(options),
      console_(job_, options.console),
      guard_(options.program, listener_.address()),
      tasks_(job_),
      to_start_(starter(job_, guard_.folder())),
      deadline_(SteadyClock::now() + options.start_timeout) {
  start(false);
}

// An MPI launcher starts when every host has an agent, which cleans up there.
void Supervisor::start(bool after_hosts) {
  for (const StartCommand& command : to_start_) {
    if (command.waits_for_hosts == after_hosts) starters_.emplace_back(command, listener_.address());
  }
  std::erase_if(to_start_, [=](const StartCommand& command) { return command.waits_for_hosts == after_hosts; });
}

int Supervisor::run() {
  while (phase_ != Phase::over) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
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
  add(guard_.poll_descriptor(), POLLIN, [this] {
    if (const std::string news = guard_.replace_if_ended(); !news.empty()) console_.say("trireme: " + news);
  });
  add(listener_.descriptor(), POLLIN, [this] { accept_runners(); });
  const int input = console_.is_full() ? 0 : POLLIN;
  for (int task = 0; task < tasks_.count(); ++task) {
    if (!tasks_[task].channel) continue;
    const Channel& channel = *tasks_[task].channel;
    add(channel.descriptor(), input | (channel.unsent_bytes() > 0 ? POLLOUT : 0), [this, task] { listen_to(task); });
  }
  for (const Channel& newcomer : newcomers_) add(newcomer.descriptor(), POLLIN, [] {});
  for (StarterProcess& starter : starters_) {
    if (starter.is_over()) continue;
    add(starter.output_descriptor(), POLLIN, [this, &starter] { listen_to(starter); });
    add(starter.end_descriptor(), POLLIN, [this, &starter] { listen_to(starter); });
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

// An identified newcomer, or one that is not ours, is moved away and leaves a closed channel behind.
void Supervisor::listen_to(Channel& newcomer) {
  std::vector<json> messages;
  const bool open = newcomer.receive(messages);
  if (messages.empty() && open) return;
  Channel channel = std::move(newcomer);
  if (!messages.empty() && open) greet(std::move(channel), messages);
}

void Supervisor::greet(Channel channel, const std::vector<json>& messages) {
  const int task = messages.front().value("task", -1);
  if (task < 0 || task >= tasks_.count()) return;
  TaskState& greeted = tasks_[task];
  if (greeted.channel || greeted.over || phase_ != Phase::starting) return;
  greeted.channel.emplace(std::move(channel));
  for (const json& message : messages) handle(task, message);
}

void Supervisor::listen_to(int task) {
  if (!tasks_[task].channel) return;
  tasks_[task].channel->flush();
  std::vector<json> messages;
  const bool open = tasks_[task].channel->receive(messages);
  for (const json& message : messages) handle(task, message);
  if (!open && !tasks_[task].over) lose(task, Cause::lost, "its connection ended unexpectedly");
  if (!open) tasks_[task].channel.reset();
}

void Supervisor::handle(int task, const json& message) {
  const std::string type = message.at("type");
  if (type == "ready") {
    if (message.contains("port")) set_port(job_.tasks[task], message["port"]);
  } else if (type == "hello") {
    tasks_[task].reported = true;
    tasks_[task].host = message.value("host", "unknown host");
  } else if (type == "output") {
    console_.add_output(task, message.at("stream"), message.at("text").get_ref<const std::string&>());
  } else if (type == "started") {
    tasks_[task].pid = message.at("pid");
  } else if (type == "not_started") {
    tasks_[task].over = true;
    fail_job({Cause::not_started, task, tasks_.full_name(task), ": " + message.at("reason").get<std::string>(), 127});
  } else if (type == "error") {
    const std::string text = message.at("text");
    console_.keep_error(task, text);
    fail_job({Cause::error, task, tasks_.full_name(task), ": " + text, message.at("code")});
  } else if (type == "trains") {
    tasks_[task].trains = true;
  } else if (type == "record") {
    write_record(task, message.at("text"));
  } else if (type == "stopped") {
    tasks_[task].stopped_by = message.at("signal");
    console_.say(
        fmt::format("trireme: {} was stopped by {}", tasks_.full_name(task), signal_text(tasks_[task].stopped_by)));
  } else if (type == "continued") {
    tasks_[task].stopped_by = 0;
    console_.say(fmt::format("trireme: {} continues", tasks_.full_name(task)));
  } else if (type == "end_request") {
    if (phase_ == Phase::running) ask_workers_to_end(SIGTERM);
  } else if (type == "lost") {
    lose(task, Cause::host_lost, message.at("reason"));
  } else if (type == "here") {
    tasks_[task].pinged = false;
  } else if (type == "ended") {
    handle_ended(task, {.code = message.at("code"), .signal = message.at("signal")});
  }
}

// Only to the file of this launch's own command line, whatever a task on another host says. Of workers that do not talk
// to each other, each sends its own: the first one's is kept.
void Supervisor::write_record(int task, const std::string& text) {
  if (options_.record_file.empty() || task > 0) return;
  try {
    write_text(text, options_.record_file);
  } catch (const Error& error) {
    fail_job({Cause::error, task, tasks_.full_name(task), fmt::format(": its record: {}", error.what()), 1});
  }
}

void Supervisor::handle_ended(int task, const Ending& ending) {
  tasks_[task].over = true;
  console_.finish(task);
  if (ending.is_success()) tasks_[task].channel->send({{"type", "release"}});
  if (ending.is_success() || (interrupted_ && is_asked_for(ending))) return;
  if (phase_ >= Phase::ending) return;  // at our request
  fail_job({ending.signal != 0 ? Cause::killed : Cause::error, task, tasks_.full_name(task),
            fmt::format(" {}", ending_text(ending)), ending.exit_code()});
}

// A task whose runner has not come is missing; its starter reports why.
void Supervisor::lose(int task, Cause cause, const std::string& reason) {
  if (!tasks_[task].reported) return;
  tasks_[task].over = true;
  console_.finish(task);
  if (phase_ >= Phase::ending) return;
  fail_job({cause, task, tasks_.full_name(task), " was lost: " + reason, 1});
}

void Supervisor::listen_to(StarterProcess& starter) {
  const auto ending = starter.look();
  if (!ending) return;
  const std::vector<int>& started = starter.start().tasks;
  for (const int task : started) listen_to(task);  // read their last messages, if any
  if (std::ranges::all_of(started, [this](int task) { return tasks_[task].over; })) return;
  const bool at_start = !tasks_.missing().empty();
  fail_job({at_start ? Cause::not_started : Cause::starter_ended, -1, starter.start().name,
            starter_text(starter, *ending), std::max(1, ending->exit_code())});
}

std::string Supervisor::starter_text(const StarterProcess& starter, const Ending& ending) const {
  std::string text = fmt::format(" {}", ending_text(ending));
  if (const auto missing = tasks_.missing(); !missing.empty()) {
    text += fmt::format(" before {} had reported", names(job_, missing));
  }
  if (const std::string output = starter.output(); !output.empty()) text += ": " + output;
  return text;
}

// The first request asks workers to end in good order, maybe with the servers' help; the second kills all.
void Supervisor::handle_end_request(int signal) {
  if (signal == 0) return;
  if (phase_ == Phase::over) {
    abandoned_ = true;
    return;
  }
  if (phase_ == Phase::leaving) return ask_to_end();
  if (signal == SIGHUP && asked_here_) return;  // a closing terminal sends several; that is not impatience
  const bool again = asked_here_ || is_failing() || phase_ == Phase::starting;
  asked_here_ = true;
  if (!again) return ask_workers_to_end(signal);
  interrupted_ = interrupted_ || failures_.empty();
  begin_killing();
}

// Only once, though there may be two requests: Slurm signals every host's part of a job, and often this process too.
void Supervisor::ask_workers_to_end(int signal) {
  if (interrupted_) return;
  interrupted_ = true;
  // A terminal shows "^C" at the beginning of the line.
  console_.say(fmt::format("{}trireme: interrupted: the workers end after this step (interrupt again to end at once)",
                           console_.shows_bar() ? "\n" : ""));
  tasks_.tell_workers({{"type", "signal"}, {"signal", signal}});
}

void Supervisor::fail_job(Failure failure) {
  if (phase_ >= Phase::ending && failures_.empty()) return;  // the user has ended it, or the workers are done
  if (failure.task >= 0 && tasks_[failure.task].lost) return;
  const bool is_origin = failure.cause == Cause::not_started;
  failures_.add(std::move(failure));
  if (!is_failing()) begin_settling();
  if (is_origin && phase_ == Phase::settling) deadline_ = SteadyClock::now();
}

void Supervisor::begin_settling() {
  deadline_ = SteadyClock::now() + (phase_ == Phase::starting ? kSettlingAtStart : kSettling);
  phase_ = Phase::settling;
  ping_hosts();
}

// A lost host makes tasks on others fail, which notice sooner than we do: their errors must not count as first.
void Supervisor::ping_hosts() {
  answers_deadline_ = SteadyClock::now() + kAnswering;
  for (const StarterProcess& starter : starters_) {
    if (!starter.start().reaches_other_host) continue;
    const std::vector<int>& tasks = starter.start().tasks;
    const auto asked =
        std::ranges::find_if(tasks, [this](int task) { return tasks_[task].channel && !tasks_[task].over; });
    if (asked == tasks.end()) continue;
    tasks_[*asked].pinged = true;
    tasks_.tell(*asked, {{"type", "ping"}});
  }
}

// Workers that follow a loss together can do so during steps, not while they prepare them.
bool Supervisor::survives_failures() const {
  const bool is_prepared = job_.least_workers == 0 || tasks_.all_train();
  return started_ && is_prepared && survives(job_, failures_.all(), tasks_.lost());
}

void Supervisor::go_on() {
  for (const Failure& failure : failures_.all()) {
    tasks_[failure.task].lost = true;
    console_.say(fmt::format("trireme: {}{}; the others continue", failure.who, failure.what));
  }
  failures_ = {};
  if (job_.least_workers > 0) tasks_.tell_workers({{"type", "members"}, {"epoch", ++epoch_}, {"workers", members()}});
  phase_ = Phase::running;
  deadline_ = SteadyClock::now() + kNoDeadline;
}

// The ranks of the workers that are not lost.
std::vector<int> Supervisor::members() {
  std::vector<int> ranks;
  for (int task = 0; task < tasks_.count(); ++task) {
    if (tasks_.is_worker(task) && !tasks_[task].lost) ranks.push_back(job_.tasks[task].index);
  }
  return ranks;
}

void Supervisor::advance() {
  if (console_.is_broken() && phase_ < Phase::settling) {
    fail_job({Cause::error, -1, "standard output", ": closed by its reader", 128 + SIGPIPE});
  }
  if (phase_ == Phase::starting) {
    if (!to_start_.empty() && tasks_.all_connected()) start(true);
    if (tasks_.missing().empty()) {
      run_tasks();
    } else if (is_late()) {
      fail_job({Cause::not_started, -1, names_with_hosts(job_, tasks_.missing()),
                fmt::format(" did not report within {} s of the start",
                            std::chrono::duration_cast<std::chrono::seconds>(options_.start_timeout).count()),
                1});
    }
  }
  if (phase_ == Phase::settling && is_late() && !tasks_.hosts_answer()) {
    deadline_ = std::min(SteadyClock::now() + 50ms, answers_deadline_);
  }
  if (phase_ == Phase::settling && (is_late() || tasks_.all_over())) {
    if (survives_failures()) {
      go_on();
    } else {
      begin_ending();
    }
  }
  if (phase_ == Phase::running && tasks_.workers_over()) begin_leaving();
  if (phase_ == Phase::leaving && tasks_.all_over()) phase_ = Phase::over;
  if (phase_ == Phase::leaving && is_late()) {
    console_.say(
        fmt::format("trireme: the workers are done; {} did not exit and will be stopped", names(job_, tasks_.left())));
    ask_to_end();
  }
  if (phase_ == Phase::ending && is_late()) begin_killing();
  if (phase_ >= Phase::ending && (!tasks_.any_runs() || is_late())) phase_ = Phase::over;
}

void Supervisor::run_tasks() {
  tell_addresses(job_);
  for (int task = 0; task < tasks_.count(); ++task) {
    tasks_.tell(task, {{"type", "run"}, {"task", job_.tasks[task]}});
  }
  started_ = true;
  phase_ = Phase::running;
  deadline_ = SteadyClock::now() + kNoDeadline;
}

void Supervisor::begin_leaving() {
  phase_ = Phase::leaving;
  deadline_ = SteadyClock::now() + options_.servers_leave;
}

void Supervisor::begin_ending() {
  failures_.settle();
  std::string text = failures_.first().who + failures_.first().what;
  for (const int task : tasks_.left()) {
    if (tasks_[task].stopped_by != 0) {
      text += fmt::format("; {} is stopped ({})", tasks_.full_name(task), signal_text(tasks_[task].stopped_by));
    }
  }
  if (job_.least_workers > 0 && is_survivable(job_, failures_.first())) {
    const int left = workers_left(job_, failures_.all(), tasks_.lost());
    if (!tasks_.all_train()) {
      text += "; a loss before all workers have begun their first step ends the job";
    } else if (left < job_.least_workers) {
      text += fmt::format("; {} worker{} left, and --elastic needs {}", left, left == 1 ? " is" : "s are",
                          job_.least_workers);
    }
  }
  console_.say(fmt::format("trireme: error: {}", text));
  ask_to_end();
}

void Supervisor::ask_to_end() {
  phase_ = Phase::ending;
  deadline_ = SteadyClock::now() + options_.grace;
  tasks_.tell_all({{"type", "signal"}, {"signal", SIGTERM}});
}

void Supervisor::begin_killing() {
  if (phase_ == Phase::settling) begin_ending();
  const bool nothing_runs = phase_ == Phase::starting;
  phase_ = nothing_runs ? Phase::over : Phase::killing;
  killed_ = true;
  deadline_ = SteadyClock::now() + kKilling;
  tasks_.tell_all({{"type", "signal"}, {"signal", SIGKILL}});
}

// After a failure, the guard simply ends mpirun and the like, which would complain otherwise. Starters that reach other
// hosts, where our guard does not, get time to clean up there.
void Supervisor::finish() {
  for (int task = 0; task < tasks_.count(); ++task) {
    if (tasks_[task].channel) tasks_[task].channel->send({{"type", "release"}});
  }
  deadline_ = SteadyClock::now() + kStartersLeave;
  for (StarterProcess& starter : starters_) starter.let_go();
  const auto waits_for_starters = [this, all = failures_.empty() && !killed_] {
    return std::ranges::any_of(starters_, [all](const StarterProcess& starter) {
      return !starter.is_over() && (all || starter.start().reaches_other_host);
    });
  };
  while (waits_for_starters() && !is_late()) wait_for_events(100ms);
  for (const std::string& text : failures_.empty() ? std::vector<std::string>{} : failures_.others()) {
    console_.say(fmt::format("trireme: after that, {}", text));
  }
  if (const auto lost = tasks_.lost(); !lost.empty()) {
    console_.say(
        fmt::format("trireme: {} {} lost during the run", names(job_, lost), lost.size() == 1 ? "was" : "were"));
  }
  while (console_.descriptor() >= 0 && !abandoned_) wait_for_events(1h);
}

}  // namespace

int supervise(JobDescription job, const Starter& starter, const SupervisorOptions& options) {
  return Supervisor(std::move(job), starter, options).run();
}

}  // namespace trireme::cluster
