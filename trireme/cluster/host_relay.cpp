#include "trireme/cluster/host_relay.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>

#include "trireme/base/clock.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/host_link.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kLeaving = 4s;                     // for the agent to clean up
constexpr auto kFlushTimeout = 30s;               // for the supervisor to read the rest
constexpr std::size_t kMostUnsent = 256U << 10U;  // the supervisor is slow: stop reading from the host

Channel awaiting_greeting(UniqueFd socket) {
  Channel channel(std::move(socket));
  channel.await_greeting();
  return channel;
}

class HostRelay {
 public:
  HostRelay(const std::vector<std::string>& command, const std::string& address)
      : HostRelay(command, address, socket_pair()) {}
  int run();

 private:
  HostRelay(const std::vector<std::string>& command, const std::string& address, std::array<UniqueFd, 2> ends);

  void wait_for_something();
  void listen_to_host();
  std::size_t unsent_bytes() const;
  void pass_on(const json& message);
  void listen_to_supervisor();
  void leave();
  void report_lost(const std::string& reason);
  void say_the_rest();
  int give_up(const std::string& reason);

  const std::string name_, address_;
  HostLink link_;
  ChildProcess connection_;
  struct Connection {  // to the supervisor
    Channel channel;
    bool runner_is_gone = false;  // close once everything is sent
  };
  std::map<int, Connection> tasks_;
  std::optional<SteadyClock::time_point> leaving_until_ = {};
  bool reading_ = true;      // from the host
  bool host_ended_ = false;  // no more output from it
};

HostRelay::HostRelay(const std::vector<std::string>& command, const std::string& address, std::array<UniqueFd, 2> ends)
    : name_(command.front()),
      address_(address),
      link_(awaiting_greeting(std::move(ends[0]))),
      connection_({.command = command, .in = ends[1].get(), .out = ends[1].get(), .err = STDERR_FILENO}) {}

int HostRelay::run() {
  for (;;) {
    wait_for_something();
    const auto ending = connection_.try_wait();  // before reading, so that the output is complete
    if (reading_ || ending) listen_to_host();    // read its last messages even if the supervisor is slow
    listen_to_supervisor();
    if (link_.channel().is_garbled()) {
      return give_up("its host sent something that is not from a launcher; does another program print there?");
    }
    if (ending) {
      report_lost(fmt::format("the {} connection to its host {}", name_, ending_text(*ending)));
      say_the_rest();
      return ending->exit_code();
    }
    if (leaving_until_ && SteadyClock::now() > *leaving_until_) {
      return host_ended_ ? give_up("its host closed the connection") : 1;
    }
    if (!leaving_until_ && link_.is_silent()) {
      return give_up(fmt::format("nothing was received from its host for {} s; the host or its network is down",
                                 std::chrono::duration_cast<std::chrono::seconds>(HostLink::kSilence).count()));
    }
    link_.keep_alive();
  }
}

void HostRelay::wait_for_something() {
  std::vector<pollfd> polled{{leaving_until_ ? -1 : STDIN_FILENO, POLLIN, 0},
                             {connection_.poll_descriptor(), POLLIN, 0}};
  for (const auto& [task, connection] : tasks_) {
    const bool has_unsent = connection.channel.unsent_bytes() > 0;
    polled.push_back({connection.channel.descriptor(), static_cast<short>(POLLIN | (has_unsent ? POLLOUT : 0)), 0});
  }
  reading_ = unsent_bytes() < kMostUnsent && !host_ended_;
  if (!reading_ || !link_.has_heard()) link_.excuse_silence();
  const bool has_unsent = link_.channel().unsent_bytes() > 0;
  polled.push_back({host_ended_ ? -1 : link_.channel().descriptor(),
                    static_cast<short>((reading_ ? POLLIN : 0) | (has_unsent ? POLLOUT : 0)), 0});
  poll(polled.data(), polled.size(), static_cast<int>(HostLink::kInterval.count()));
  if (polled[0].revents != 0) leave();
  link_.flush();
}

void HostRelay::listen_to_host() {
  std::vector<json> messages;
  const bool open = link_.receive(messages);
  for (const json& message : messages) pass_on(message);
  if (open) return;
  host_ended_ = true;
  if (!leaving_until_) leave();
}

std::size_t HostRelay::unsent_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [task, connection] : tasks_) bytes += connection.channel.unsent_bytes();
  return bytes;
}

void HostRelay::pass_on(const json& message) {
  const int task = message.value("task", -1);
  if (const auto found = tasks_.find(task); message["type"] == "gone" && found != tasks_.end()) {
    found->second.runner_is_gone = true;
  }
  if (message["type"] == "end_request" && !tasks_.empty()) tasks_.begin()->second.channel.send(message);
  if (message["type"] != "from" || leaving_until_) return;
  if (!tasks_.contains(task)) tasks_.emplace(task, Connection{Channel(connect_to(address_))});
  tasks_.at(task).channel.send(message.at("message"));
}

void HostRelay::listen_to_supervisor() {
  for (auto entry = tasks_.begin(); entry != tasks_.end();) {
    auto& [task, connection] = *entry;
    connection.channel.flush();
    std::vector<json> messages;
    const bool open = connection.channel.receive(messages);
    for (const json& message : messages) link_.send({{"type", "to"}, {"task", task}, {"message", message}});
    const bool is_done = !open || (connection.runner_is_gone && connection.channel.unsent_bytes() == 0);
    entry = is_done ? tasks_.erase(entry) : std::next(entry);
  }
}

// The end of its input tells the agent to leave.
void HostRelay::leave() {
  leaving_until_ = SteadyClock::now() + kLeaving;
  link_.flush();
  shutdown(link_.channel().descriptor(), SHUT_WR);
}

void HostRelay::report_lost(const std::string& reason) {
  for (auto& [task, connection] : tasks_) connection.channel.send({{"type", "lost"}, {"reason", reason}});
}

// To the supervisor, while it lives: it holds our input open.
void HostRelay::say_the_rest() {
  const auto deadline = SteadyClock::now() + kFlushTimeout;
  while (unsent_bytes() > 0 && SteadyClock::now() < deadline) {
    std::vector<pollfd> polled{{STDIN_FILENO, POLLIN, 0}};
    for (const auto& [task, connection] : tasks_) {
      if (connection.channel.unsent_bytes() > 0) polled.push_back({connection.channel.descriptor(), POLLOUT, 0});
    }
    poll(polled.data(), polled.size(), static_cast<int>(HostLink::kInterval.count()));
    if (polled[0].revents != 0) return;
    listen_to_supervisor();
  }
}

int HostRelay::give_up(const std::string& reason) {
  fmt::print(stderr, "{}\n", reason);
  report_lost(reason);
  say_the_rest();
  return 1;
}

}  // namespace

int run_host_relay(const std::vector<std::string>& command, const std::string& address) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  return HostRelay(command, address).run();
}

}  // namespace trireme::cluster
