#include "trireme/cluster/host_check.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/greeting.hpp"
#include "trireme/perf/build_info.hpp"

namespace trireme::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 30s;
constexpr int kNoSuchProgram = 127, kCannotBeRun = 126;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::string> probe_command(const RemoteHost& host) {
  std::vector<std::string> words{host.program, "launch-probe"};
  add_port_options(host.ports, words);
  return words;
}

// One question that is under way, and what it has said so far.
class Probe {
 public:
  Probe(const RemoteHost& host, const HostReach& reach);

  bool is_over() const { return ending_ || is_chattering(); }
  std::array<pollfd, 3> descriptors() const {
    return {pollfd{probe_.out.get(), POLLIN, 0}, pollfd{probe_.err.get(), POLLIN, 0},
            pollfd{probe_.process.poll_descriptor(), POLLIN, 0}};
  }
  void look();
  HostAnswer answer() const;

 private:
  std::string problem() const;
  bool is_greeted() const { return behind_greeting(said_) != std::string::npos; }
  bool is_chattering() const { return said_.size() > kMostChatter + kHostGreeting.size() && !is_greeted(); }

  RemoteHost host_;
  HostReach reach_;
  double asked_ = seconds_since_1970(), answered_ = 0;
  PipedProcess probe_;
  std::string said_, complained_;
  std::optional<Ending> ending_;
};

Probe::Probe(const RemoteHost& host, const HostReach& reach)
    : host_(host), reach_(reach), probe_(start_piped(reach.command(host.name, probe_command(host)))) {
  [[maybe_unused]] const ssize_t fits = write(probe_.in.get(), kLauncherGreeting.data(), kLauncherGreeting.size());
  probe_.in.reset();
}

void Probe::look() {
  constexpr std::size_t kEnough = 1U << 20U;  // more than anybody has to say: a shell may print without end
  ending_ = probe_.process.try_wait();        // asked first: what it has said is complete then
  const bool was_greeted = is_greeted();
  read_available(probe_.out, said_, kEnough);
  read_available(probe_.err, complained_, kEnough);
  if (!was_greeted && is_greeted()) answered_ = seconds_since_1970();
}

std::string Probe::problem() const {
  const std::string words = last_words(complained_, reach_);
  if (is_chattering()) return kChatterProblem;
  if (!ending_)
    return fmt::format("does not answer within {} s{}{}", kPatience.count(), words.empty() ? "" : ": ", words);
  if (ending_->is_success()) return "";
  const int code = ending_->exit_code();
  if (std::string problem = reach_.failure(code, words); !problem.empty()) return problem;
  if (code == kNoSuchProgram || code == kCannotBeRun) {
    return fmt::format(
        "{} is not there, or cannot be run ({}); bring it there with --ship, or say where it is with --remote-program",
        host_.program, words);
  }
  return words.empty() ? fmt::format("the check {}", ending_text(*ending_)) : words;
}

HostFacts facts_from_json(const json& answer) {
  HostFacts facts{.build = answer.at("build"),
                  .cores = answer.at("cores"),
                  .core_limit = answer.at("core_limit"),
                  .addresses = {},
                  .reached_address = answer.at("reached_address"),
                  .time = answer.at("time"),
                  .hears_launcher = answer.at("hears_launcher")};
  for (const json& entry : answer.at("addresses")) facts.addresses.push_back({entry.at(0), entry.at(1), entry.at(2)});
  return facts;
}

HostAnswer Probe::answer() const {
  HostAnswer answer{.problem = problem()};
  if (!answer.problem.empty()) return answer;
  try {
    const std::size_t begin = behind_greeting(said_);
    answer.facts = facts_from_json(json::parse(begin == std::string::npos ? "" : said_.substr(begin)));
  } catch (const json::exception&) {
    answer.problem = fmt::format("answers with '{}', which is not trireme's answer",
                                 said_.substr(0, std::min<std::size_t>(80, said_.find('\n'))));
    return answer;
  }
  if (answer.facts.build != perf::build_text()) {
    answer.problem =
        fmt::format("has trireme {}, and this is {}; all hosts need the same", answer.facts.build, perf::build_text());
  } else if (!answer.facts.hears_launcher) {
    answer.problem = fmt::format("does not hear what the launcher says: {}",
                                 reach_.is_container ? "--exec has to pass standard input on (docker and podman: -i)"
                                                     : "something at the start of its shell takes the standard input");
  }
  answer.clock_skew = answer.facts.time - (asked_ + answered_) / 2;
  answer.clock_error = (answered_ - asked_) / 2;
  return answer;
}

}  // namespace

std::vector<HostAnswer> ask_hosts(const std::vector<RemoteHost>& hosts, const HostReach& reach) {
  std::vector<Probe> probes;
  probes.reserve(hosts.size());
  for (const RemoteHost& host : hosts) probes.emplace_back(host, reach);
  const auto deadline = Clock::now() + kPatience;
  const auto is_over = [](const Probe& probe) { return probe.is_over(); };
  while (!std::all_of(probes.begin(), probes.end(), is_over) && Clock::now() < deadline) {
    std::vector<pollfd> polled;
    for (const Probe& probe : probes) {
      if (probe.is_over()) continue;
      const auto descriptors = probe.descriptors();
      polled.insert(polled.end(), descriptors.begin(), descriptors.end());
    }
    poll(polled.data(), polled.size(), 1000);
    for (Probe& probe : probes) {
      if (!probe.is_over()) probe.look();
    }
  }
  std::vector<HostAnswer> answers;
  for (const Probe& probe : probes) answers.push_back(probe.answer());
  return answers;
}

}  // namespace trireme::cluster
