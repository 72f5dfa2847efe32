#include "processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <exception>
#include <stdexcept>

#include "trireme/cluster/ports.hpp"

namespace trireme::comm::testkit {
namespace {

void write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(descriptor, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& body, int answer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    write_all(answer, body());
  } catch (const std::exception& error) {
    write_all(answer, error.what());
    code = 1;
  }
  std::_Exit(code);
}

// All that comes until the other end is closed. False: that took too long.
bool read_all(int descriptor, std::chrono::steady_clock::time_point until, std::string& text) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waited{descriptor, POLLIN, 0};
    if (left.count() <= 0 || poll(&waited, 1, static_cast<int>(left.count())) <= 0) return false;
    char buffer[4096];
    const ssize_t bytes = read(descriptor, buffer, sizeof buffer);
    if (bytes <= 0) return true;
    text.append(buffer, bytes);
  }
}

}  // namespace

Processes::~Processes() {
  for (const Process& process : processes_) {
    if (process.pid < 0) continue;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
}

void Processes::start(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    processes_.clear();  // the pipes of the others
    run_child(body, write_end.get());
  }
  processes_.push_back({pid, std::move(read_end)});
}

Outcome Processes::wait(std::size_t index, std::chrono::seconds longest) {
  Process& process = processes_.at(index);
  Outcome outcome;
  const bool is_in_time = read_all(process.answer.get(), std::chrono::steady_clock::now() + longest, outcome.answer);
  if (!is_in_time) {
    kill(process.pid, SIGKILL);
    outcome.answer += " [took too long and was killed]";
  }
  int status = 0;
  waitpid(process.pid, &status, 0);
  process.pid = -1;
  outcome.is_success = is_in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

std::vector<rpc::RpcTask> local_tasks(int count) {
  static cluster::PortClaims claims;  // until this process ends: other tests run at the same time
  std::vector<rpc::RpcTask> tasks;
  for (const int port : claims.claim({.usual_first = 24000, .count = count})) {
    tasks.push_back({fmt::format("worker {}", tasks.size()), fmt::format("127.0.0.1:{}", port)});
  }
  return tasks;
}

rpc::RpcOptions options_of(const std::vector<rpc::RpcTask>& tasks, int self) {
  return {.tasks = tasks, .self = self, .secret = "open sesame", .join_timeout = std::chrono::seconds(30)};
}

std::vector<Outcome> run_tasks(const std::vector<rpc::RpcOptions>& options, const TaskBody& body) {
  Processes processes;
  for (const rpc::RpcOptions& each : options) {
    processes.start([&] {
      const auto world = rpc::join(each);
      return body(*world);
    });
  }
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < options.size(); ++i) outcomes.push_back(processes.wait(i));
  return outcomes;
}

std::vector<Outcome> run_tasks(int count, const TaskBody& body) {
  const auto tasks = local_tasks(count);
  std::vector<rpc::RpcOptions> options;
  for (int self = 0; self < count; ++self) options.push_back(options_of(tasks, self));
  return run_tasks(options, body);
}

std::vector<Outcome> run_cluster(int count, const std::string& protocol, const ClusterBody& body) {
  ClusterPlace job;
  for (const rpc::RpcTask& task : local_tasks(count)) job.spec.workers.push_back(task.address);
  job.protocol = protocol;
  job.secret = "open sesame";
  Processes processes;
  for (int self = 0; self < count; ++self) {
    processes.start([&] {
      ClusterPlace own = job;
      own.place.index = self;
      const auto world = join_world(own, {});
      return body(*world);
    });
  }
  std::vector<Outcome> outcomes;
  for (int i = 0; i < count; ++i) outcomes.push_back(processes.wait(i));
  return outcomes;
}

bool is_available(const std::vector<Outcome>& outcomes) {
  return outcomes.front().answer.find("this build has no") == std::string::npos;
}

}  // namespace trireme::comm::testkit
