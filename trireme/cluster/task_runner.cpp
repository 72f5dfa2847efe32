#include "trireme/cluster/task_runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/cluster/channel.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/runner_link.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::cluster {
namespace {

using nlohmann::json;

constexpr std::size_t kEnoughUnsent = 256U << 10U;  // the supervisor is slow: stop reading, so that the program blocks

void set_nonblocking(const UniqueFd& descriptor) { fcntl(descriptor.get(), F_SETFL, O_NONBLOCK); }

class TaskRunner {
 public:
  TaskRunner(Channel& supervisor, const Task& task);
  void obey(const json& message);
  void run();

 private:
  void start(const Task& task);
  void wait_for_something();
  void read_link();
  void read_output(UniqueFd& pipe, int stream, bool all);
  void look_at_program();
  void end(const Ending& ending);

  Channel& supervisor_;
  std::optional<ChildProcess> program_;
  std::optional<Channel> link_;
  UniqueFd out_, err_, child_signals_;
  bool ended_ = false, released_ = false;
};

TaskRunner::TaskRunner(Channel& supervisor, const Task& task) : supervisor_(supervisor) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  child_signals_.reset(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  try {
    start(task);
    supervisor_.send({{"type", "started"}, {"pid", program_->pid()}});
  } catch (const Error& error) {
    ended_ = true;
    supervisor_.send({{"type", "not_started"}, {"reason", error.what()}});
  }
}

void TaskRunner::start(const Task& task) {
  PipeEnds out = make_pipe(), err = make_pipe();
  auto [our_end, program_end] = socket_pair();
  link_.emplace(std::move(our_end));
  auto environment = task.environment;
  environment[kLinkVariable] = link_value(program_end.get());
  program_.emplace(ChildOptions{.command = task.command,
                                .environment = environment,
                                .processors = task.processors,
                                .out = out.write.get(),
                                .err = err.write.get(),
                                .kept_descriptors = {program_end.get()}});
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  set_nonblocking(out_);
  set_nonblocking(err_);
}

void TaskRunner::run() {
  while (!released_) wait_for_something();
  if (program_ && !ended_) program_->signal_group(SIGKILL);
}

void TaskRunner::wait_for_something() {
  const bool reading = supervisor_.unsent_bytes() < kEnoughUnsent;
  const auto events = [](const Channel& channel) {
    return static_cast<short>(POLLIN | (channel.unsent_bytes() > 0 ? POLLOUT : 0));
  };
  const auto when = [](bool wanted, int descriptor) { return wanted ? descriptor : -1; };
  std::array<pollfd, 5> polled{pollfd{supervisor_.descriptor(), events(supervisor_), 0},
                               pollfd{child_signals_.get(), POLLIN, 0}, pollfd{when(reading, out_.get()), POLLIN, 0},
                               pollfd{when(reading, err_.get()), POLLIN, 0},
                               link_ ? pollfd{link_->descriptor(), events(*link_), 0} : pollfd{-1, 0, 0}};
  poll(polled.data(), polled.size(), -1);
  supervisor_.flush();
  if (link_) link_->flush();
  if (polled[0].revents != 0) {
    std::vector<json> messages;
    if (!supervisor_.receive(messages)) released_ = true;
    for (const json& message : messages) obey(message);
  }
  if (polled[4].revents != 0) read_link();
  if (polled[2].revents != 0) read_output(out_, 1, false);
  if (polled[3].revents != 0) read_output(err_, 2, false);
  if (polled[1].revents != 0) look_at_program();
}

void TaskRunner::obey(const json& message) {
  const std::string type = message.at("type");
  if (type == "release") released_ = true;
  if (type == "members" && link_) link_->send(message);
  if (type == "signal" && program_ && !ended_) program_->signal_group(message.at("signal"));
}

void TaskRunner::read_link() {
  std::vector<json> messages;
  const bool open = link_->receive(messages);
  for (const json& message : messages) {
    const std::string type = message.at("type");
    if (type == "error" || type == "record" || type == "trains") supervisor_.send(message);
  }
  if (!open) link_.reset();
}

void TaskRunner::read_output(UniqueFd& pipe, int stream, bool all) {
  std::array<char, 65536> chunk{};
  do {
    const ssize_t count = read(pipe.get(), chunk.data(), chunk.size());
    if (count == 0) pipe.reset();
    if (count <= 0) return;
    const std::string text(chunk.data(), count);
    supervisor_.send({{"type", "output"}, {"stream", stream}, {"text", text}});
  } while (all);
}

void TaskRunner::look_at_program() {
  signalfd_siginfo nothing_new{};
  while (read(child_signals_.get(), &nothing_new, sizeof nothing_new) > 0) continue;
  if (!program_ || ended_) return;
  while (const auto status = program_->next_change()) {
    if (WIFSTOPPED(*status)) {
      supervisor_.send({{"type", "stopped"}, {"signal", WSTOPSIG(*status)}});
    } else if (WIFCONTINUED(*status)) {
      supervisor_.send({{"type", "continued"}});
    } else {
      return end(ending_of(*status));
    }
  }
}

// By now all output of the program is in the pipes. Its child processes must not stay.
void TaskRunner::end(const Ending& ending) {
  ended_ = true;
  program_->signal_group(SIGKILL);
  if (link_) read_link();
  if (out_.is_open()) read_output(out_, 1, true);
  if (err_.is_open()) read_output(err_, 2, true);
  out_.reset();
  err_.reset();
  supervisor_.send({{"type", "ended"}, {"code", ending.code}, {"signal", ending.signal}});
}

// Files and shared segments of libraries go to the folder that is removed with the job.
std::map<std::string, std::string> folder_environment(const std::string& folder) {
  return {{"UCX_POSIX_DIR", folder},
          {"OMPI_MCA_orte_tmpdir_base", folder},
          {"OMPI_MCA_btl_vader_backing_directory", folder},
          {"OMPI_MCA_osc_sm_backing_directory", folder},
          {"OMPI_MCA_osc_rdma_backing_directory", folder}};
}

// The first message is the task; later ones may have arrived with it. Empty if the supervisor went away before.
std::vector<json> receive_task(Channel& supervisor) {
  std::vector<json> messages;
  for (;;) {
    const bool open = supervisor.receive(messages);
    const auto run = std::ranges::find_if(messages, [](const json& message) { return message.at("type") == "run"; });
    messages.erase(messages.begin(), run);
    if (!messages.empty()) return messages;
    if (!open) return {};
    pollfd polled{supervisor.descriptor(), POLLIN, 0};
    poll(&polled, 1, -1);
  }
}

}  // namespace

void run_task(const std::string& address, int task) {
  // The supervisor decides about ending: signals from whatever started this runner are ignored.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  Channel supervisor(connect_to(address));
  supervisor.send({{"type", "hello"}, {"task", task}, {"host", comm::host_name()}});
  const std::vector<json> orders = receive_task(supervisor);
  if (orders.empty()) return;
  Task to_run = orders.front().at("task");
  to_run.environment.merge(folder_environment(job_folder(address)));
  TaskRunner runner(supervisor, to_run);
  for (std::size_t i = 1; i < orders.size(); ++i) runner.obey(orders[i]);
  runner.run();
}

namespace {

bool is_sent_to_launcher(const std::string& path) {
  return path != "-" && environment_variable(kRecordVariable) == kFromLauncher;
}

}  // namespace

bool report_error(const std::string& text, int exit_code) {
  return tell_runner({{"type", "error"}, {"text", text}, {"code", exit_code}});
}

void check_record_path(const std::string& path) {
  if (!path.empty() && !is_sent_to_launcher(path)) check_writable(path);
}

void write_record(const Json& record, const std::string& path) {
  if (!is_sent_to_launcher(path)) return write_json(record, path);
  const std::string text = record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!tell_runner({{"type", "record"}, {"text", text}})) {
    fail(ErrorKind::failed, "the record could not be sent to the launcher, which writes it to {}", path);
  }
}

}  // namespace trireme::cluster
