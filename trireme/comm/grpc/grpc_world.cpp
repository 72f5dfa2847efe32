#include "trireme/comm/grpc/grpc_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/grpc/control_client.hpp"
#include "trireme/comm/grpc/journal.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/rpc_communicator.hpp"
#include "trireme/comm/grpc/security.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::comm::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestLeave{10000};
// One that is refused stays for a moment, so that the others hear the same from it, and not nothing.
constexpr std::chrono::milliseconds kParting{500};
constexpr std::int64_t kLargestPart = 32 << 20;

const RpcOptions& check(const RpcOptions& options) {
  const auto count = static_cast<int>(options.tasks.size());
  if (options.self < 0 || options.self >= count) {
    bad_input("task {} of a job over gRPC: its list has {} tasks", options.self, count);
  }
  std::set<std::string> names, addresses;
  for (const RpcTask& task : options.tasks) {
    if (!names.insert(task.name).second) bad_input("two tasks have the name '{}'", task.name);
    if (!addresses.insert(task.address).second)
      bad_input("{}: another task has the address {}", task.name, task.address);
  }
  if (options.secret.empty()) bad_input("a job over gRPC needs a secret, the same for all its tasks");
  if (options.streams < 1 || options.streams > 64) bad_input("{} streams: 1 to 64 are possible", options.streams);
  if (options.part_bytes < 1 || options.part_bytes > kLargestPart) {
    bad_input("parts of {} bytes: 1 to {} are possible", options.part_bytes, kLargestPart);
  }
  return options;
}

std::string describe_transport(const RpcOptions& options) {
  const std::string version = library_version();
  return fmt::format("gRPC {} over TCP, {} {}{}", version.substr(0, version.rfind('.')), options.streams,
                     options.streams == 1 ? "stream" : "streams", options.tls.certificate.empty() ? "" : ", TLS");
}

// Whoever logs does not wait for the log.
RpcOptions with_journal(RpcOptions options, Journal& journal) {
  if (options.log) options.log = [&](const std::string& line) { journal.write(line); };
  return options;
}

std::string describe_wait(const Health& health) {
  return fmt::format("{}; here {}: {}", fmt::join(health.missing, ", "), health.here.size() == 1 ? "is" : "are",
                     fmt::join(health.here, ", "));
}

class RpcWorldOverSockets : public RpcWorld {
 public:
  explicit RpcWorldOverSockets(const RpcOptions& options)
      : journal_(options.log),
        options_(with_journal(check(options), journal_)),
        tls_(read_tls(options_.tls)),
        self_(own_identity(options_)),
        roster_(options_),
        outlet_(options_, tls_, self_, roster_),
        transport_{roster_, inboxes_, outlet_, options_.self, describe_transport(options_)},
        client_(options_, tls_, self_) {
    roster_.set_on_absence([this] { inboxes_.ring_all(); });
    listener_ = std::make_unique<Listener>(options_, tls_, self_, roster_, inboxes_, make_answers());
    meet();
    std::vector<int> tasks(options_.tasks.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    communicator_ = std::make_unique<RpcCommunicator>(transport_, std::move(tasks), options_.self, 0);
    const auto timeout = communicator_->timeout();
    communicator_->set_timeout(options_.join_timeout);
    communicator_->set_context("joining");
    communicator_->introduce(host_name(), node_key(), self_.name);
    communicator_->set_context("");
    communicator_->set_timeout(timeout);
    roster_.set_state("running");
  }

  Communicator& communicator() override { return *communicator_; }

  void leave() override {
    roster_.set_state("leaving");
    outlet_.leave(kLongestLeave);
  }

  void set_statistics(std::function<std::string()> statistics) override {
    const std::lock_guard lock(answers_mutex_);
    statistics_ = std::move(statistics);
  }
  std::string statistics_of(int task) override {
    check_task(task);
    return task == options_.self ? statistics() : client_.statistics_of(task);
  }
  void set_shutdown(std::function<void()> shutdown) override {
    const std::lock_guard lock(answers_mutex_);
    shutdown_ = std::move(shutdown);
  }
  void shut_down(int task) override {
    check_task(task);
    task == options_.self ? shutdown() : client_.shut_down(task);
  }
  Health health_of(int task) override {
    check_task(task);
    return task == options_.self ? roster_.health() : client_.health_of(task);
  }

 private:
  // Says hello to all others until all have welcomed us.
  void meet() {
    for (int task = 0; task < static_cast<int>(options_.tasks.size()); ++task) {
      if (task != options_.self) client_.start_hello(task);
    }
    const auto start = Clock::now();
    std::chrono::duration<double> next_word = std::chrono::seconds(3);
    while (!roster_.has_reached_all()) {
      if (const auto greeting = client_.next_greeting(std::chrono::milliseconds(100))) take(*greeting);
      const std::chrono::duration<double> waited = Clock::now() - start;
      check_lost();
      if (waited > options_.join_timeout && !roster_.has_reached_all()) give_up();
      if (waited > next_word) {
        next_word += std::chrono::seconds(10);
        say(fmt::format("{} is waiting for {}", self_.name, describe_wait(roster_.health())));
      }
    }
  }

  void take(const ControlClient::Greeting& greeting) {
    using Outcome = ControlClient::Greeting::Outcome;
    if (greeting.outcome == Outcome::refused) {
      std::this_thread::sleep_for(kParting);
      fail(ErrorKind::failed, "{}", greeting.reason);
    }
    if (greeting.outcome == Outcome::interrupted) {
      client_.start_hello(greeting.task);
      return;
    }
    const std::string refusal = roster_.admit(greeting.identity);
    if (!refusal.empty() || greeting.identity.index != greeting.task) {
      fail(ErrorKind::failed, "{} is not what answers there: {}", roster_.name_of(greeting.task), refusal);
    }
    outlet_.open(greeting.task);
    roster_.reached(greeting.task);
  }

  void check_lost() const {
    const Health health = roster_.health();
    if (health.lost.empty()) return;
    fail(ErrorKind::failed, "{}: lost {} while waiting for {}", self_.name, fmt::join(health.lost, ", "),
         describe_wait(health));
  }

  [[noreturn]] void give_up() {
    const Health health = roster_.health();
    std::vector<std::string> silent;
    std::string reason;
    for (int task = 0; task < static_cast<int>(options_.tasks.size()); ++task) {
      if (roster_.is_reached(task)) continue;
      silent.push_back(fmt::format("{} ({})", listed(task).name, listed(task).address));
      reason = client_.why_silent(task);
    }
    const std::int64_t refused = listener_->refused_calls();
    fail(ErrorKind::failed, "{} did not come within {}; here {}: {} (gRPC says: {}{})", fmt::join(silent, ", "),
         format_seconds(options_.join_timeout.count()), health.here.size() == 1 ? "is" : "are",
         fmt::join(health.here, ", "), reason,
         refused == 0 ? "" : fmt::format("; {} calls without the job's secret were refused", refused));
  }

  Answers make_answers() {
    return {.statistics = [this] { return statistics(); }, .shut_down = [this] { shutdown(); }};
  }
  std::string statistics() {
    const std::lock_guard lock(answers_mutex_);
    return statistics_ ? statistics_() : "{}";
  }
  void shutdown() {
    const std::lock_guard lock(answers_mutex_);
    if (shutdown_) shutdown_();
  }

  const RpcTask& listed(int task) const { return options_.tasks[static_cast<std::size_t>(task)]; }
  void check_task(int task) const {
    if (task >= 0 && task < static_cast<int>(options_.tasks.size())) return;
    bad_input("task {}: there are tasks 0 to {}", task, options_.tasks.size() - 1);
  }
  void say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  Journal journal_;
  const RpcOptions options_;
  const Tls tls_;
  const Identity self_;
  std::mutex answers_mutex_;
  std::function<std::string()> statistics_;
  std::function<void()> shutdown_;
  Roster roster_;
  Inboxes inboxes_;
  Outlet outlet_;
  Transport transport_;
  ControlClient client_;
  std::unique_ptr<Listener> listener_;
  // Goes before the two that have threads: what these notice from then on is their own end.
  struct Closing {
    Roster& roster;
    ~Closing() { roster.close(); }
  } closing_{roster_};
  std::unique_ptr<RpcCommunicator> communicator_;
};

}  // namespace

std::unique_ptr<RpcWorld> join(const RpcOptions& options) {
  silence_library();
  return std::make_unique<RpcWorldOverSockets>(options);
}

std::string library_version() { return grpc::Version(); }

}  // namespace trireme::comm::rpc
