#include "trireme/cluster/host_agent.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/greeting.hpp"
#include "trireme/cluster/host_link.hpp"
#include "trireme/cluster/ports.hpp"
#include "trireme/cluster/signals.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::cluster {
namespace {

using nlohmann::json;

using namespace std::chrono_literals;

constexpr auto kLastWords = 2s;                     // for the launcher to read the last messages
constexpr std::size_t kEnoughUnsent = 256U << 10U;  // the launcher is slow: stop reading from runners

class HostAgent {
 public:
  explicit HostAgent(const HostAgentOptions& options);
  void run();

 private:
  struct Runner {
    int task;
    std::optional<ChildProcess> process = {};  // nullopt: started by others
    std::optional<Channel> channel = {};
    bool gone = false;  // it had a channel, which has ended
  };

  void report(const HostAgentOptions& options);
  ChildOptions runner_options(const std::string& program, int task) const;
  bool all_gone() const;
  void say_the_rest();
  void wait_for_something();
  void pass_on_end_requests();
  void listen_to_launcher();
  void greet_newcomers();
  void listen_to(Runner& runner);
  Runner* runner_of(int task);

  EndRequests end_requests_;  // first: from here on signals are forwarded
  HostLink link_;
  Listener listener_;
  Guard guard_;  // before the runners: ends everything once they are done
  PortClaims ports_;
  std::vector<Runner> runners_;
  std::vector<Channel> newcomers_;  // connected, but not identified yet
  bool connected_ = true;           // to the launcher
};

HostAgent::HostAgent(const HostAgentOptions& options)
    : link_(Channel(UniqueFd(dup(STDIN_FILENO)), UniqueFd(dup(STDOUT_FILENO)))),
      listener_(options.address.empty() ? random_address() : options.address),
      guard_(options.program, listener_.address()) {
  report(options);
  for (const int task : options.tasks) {
    runners_.push_back({.task = task});
    if (options.address.empty()) runners_.back().process.emplace(runner_options(options.program, task));
  }
}

// Reports for each task that its runner may come, and where the task will listen.
void HostAgent::report(const HostAgentOptions& options) {
  TaskPorts ports = claim_ports(options.ports, ports_);
  ports.workers.insert(ports.workers.end(), ports.servers.begin(), ports.servers.end());
  for (std::size_t i = 0; i < options.tasks.size(); ++i) {
    json message{{"type", "ready"}, {"task", options.tasks[i]}};
    if (i < ports.workers.size()) message["port"] = ports.workers[i];
    link_.send({{"type", "from"}, {"task", options.tasks[i]}, {"message", message}});
  }
}

ChildOptions HostAgent::runner_options(const std::string& program, int task) const {
  return {.command = {program, "launch-task", "--task", std::to_string(task)},
          .environment = {{kLaunchVariable, listener_.address()}},
          .err = STDERR_FILENO};
}

bool HostAgent::all_gone() const {
  return std::ranges::all_of(runners_, [](const Runner& runner) { return runner.gone; });
}

void HostAgent::run() {
  while (connected_ && !all_gone()) wait_for_something();
  if (connected_) say_the_rest();
}

void HostAgent::say_the_rest() {
  const auto deadline = SteadyClock::now() + kLastWords;
  while (link_.channel().unsent_bytes() > 0 && SteadyClock::now() < deadline) {
    pollfd polled{link_.channel().output_descriptor(), POLLOUT, 0};
    poll(&polled, 1, 100);
    link_.flush();
  }
}

void HostAgent::wait_for_something() {
  const bool reading = link_.channel().unsent_bytes() < kEnoughUnsent;
  std::vector<pollfd> polled{{link_.channel().descriptor(), POLLIN, 0},
                             {listener_.descriptor(), POLLIN, 0},
                             {end_requests_.descriptor(), POLLIN, 0},
                             {guard_.poll_descriptor(), POLLIN, 0}};
  if (link_.channel().unsent_bytes() > 0) polled.push_back({link_.channel().output_descriptor(), POLLOUT, 0});
  for (const Channel& newcomer : newcomers_) polled.push_back({newcomer.descriptor(), POLLIN, 0});
  for (const Runner& runner : runners_) {
    if (runner.channel && reading) polled.push_back({runner.channel->descriptor(), POLLIN, 0});
    if (!runner.channel && !runner.gone && runner.process) {
      polled.push_back({runner.process->poll_descriptor(), POLLIN, 0});
    }
  }
  poll(polled.data(), polled.size(), static_cast<int>(HostLink::kInterval.count()));
  guard_.replace_if_ended();
  pass_on_end_requests();
  listen_to_launcher();
  greet_newcomers();
  for (Runner& runner : runners_) {
    if (reading) listen_to(runner);
  }
  link_.keep_alive();
  link_.flush();
}

// The launcher decides about ending but may not know: Slurm signals the processes of its steps.
void HostAgent::pass_on_end_requests() {
  while (const int signal = end_requests_.next()) {
    if (signal == SIGTERM) link_.send({{"type", "end_request"}});
  }
}

void HostAgent::listen_to_launcher() {
  std::vector<json> messages;
  connected_ = link_.receive(messages) && !link_.is_silent();
  for (const json& message : messages) {
    Runner* runner = runner_of(message.value("task", -1));
    if (message["type"] != "to" || runner == nullptr) continue;
    const json& inner = message.at("message");
    if (inner.value("type", "") == "ping") {  // whether this host is reachable, whatever its runners do
      link_.send({{"type", "from"}, {"task", runner->task}, {"message", {{"type", "here"}}}});
    } else if (runner->channel) {
      runner->channel->send(inner);
    }
  }
}

// An identified newcomer is moved to its runner and leaves a closed channel behind.
void HostAgent::greet_newcomers() {
  if (UniqueFd accepted = listener_.accept(); accepted.is_open()) newcomers_.emplace_back(std::move(accepted));
  for (Channel& newcomer : newcomers_) {
    std::vector<json> messages;
    const bool open = newcomer.receive(messages);
    if (messages.empty() && open) continue;
    Channel channel = std::move(newcomer);
    Runner* runner = messages.empty() ? nullptr : runner_of(messages.front().value("task", -1));
    if (!open || runner == nullptr || runner->channel || runner->gone) continue;
    runner->channel.emplace(std::move(channel));
    for (const json& message : messages) {
      link_.send({{"type", "from"}, {"task", runner->task}, {"message", message}});
    }
  }
  std::erase_if(newcomers_, [](const Channel& newcomer) { return newcomer.descriptor() < 0; });
}

void HostAgent::listen_to(Runner& runner) {
  if (runner.gone) return;
  if (!runner.channel) {
    if (const auto ending = runner.process ? runner.process->try_wait() : std::nullopt) {
      fail(ErrorKind::failed, "the runner of a task {} on {} before it had reported", ending_text(*ending),
           comm::host_name());
    }
    return;
  }
  runner.channel->flush();
  std::vector<json> messages;
  runner.gone = !runner.channel->receive(messages);
  for (const json& message : messages) link_.send({{"type", "from"}, {"task", runner.task}, {"message", message}});
  if (!runner.gone) return;
  runner.channel.reset();
  link_.send({{"type", "gone"}, {"task", runner.task}});
}

HostAgent::Runner* HostAgent::runner_of(int task) {
  const auto found = std::ranges::find_if(runners_, [task](const Runner& runner) { return runner.task == task; });
  return found == runners_.end() ? nullptr : &*found;
}

}  // namespace

void run_host_agent(const HostAgentOptions& options) {
  [[maybe_unused]] const int stays = chdir(options.folder.c_str());
  fmt::print("{}", kHostGreeting);
  std::fflush(stdout);
  HostAgent(options).run();
}

}  // namespace trireme::cluster
