#include "trireme/comm/grpc/grpc_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/grpc/attendance.hpp"
#include "trireme/comm/grpc/control_client.hpp"
#include "trireme/comm/grpc/journal.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/meeting.hpp"
#include "trireme/comm/grpc/messages.hpp"
#include "trireme/comm/grpc/rpc_communicator.hpp"
#include "trireme/comm/grpc/security.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::comm::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestLeave{10000};
// One that is refused stays for a moment, so that the others hear the same from it, and not nothing.
constexpr std::chrono::milliseconds kParting{500};
// How often those who wait hear who has come meanwhile.
constexpr std::chrono::seconds kNews{1};
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
        caller_{options_, tls_, self_},
        roster_(options_),
        outlet_(caller_, roster_),
        transport_{roster_, inboxes_, outlet_, options_.self, describe_transport(options_), [this] { break_off(); }} {
    roster_.set_on_absence([this] { on_absence(); });
    {
      auto listener = std::make_unique<Listener>(options_, tls_, self_, roster_, inboxes_, make_answers());
      const std::lock_guard lock(listener_mutex_);
      listener_ = std::move(listener);
    }
    if (options_.self != kMeetingTask) {
      attendance_.emplace(caller_, roster_, outlet_.queue());
      attendance_->come();
    }
    meet();
    std::vector<int> tasks(options_.tasks.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    communicator_ = std::make_unique<RpcCommunicator>(transport_, std::move(tasks), options_.self, 0);
    communicator_->set_members(members());
    roster_.set_state("running");
  }

  Communicator& communicator() override { return *communicator_; }

  void leave() override {
    roster_.set_state("leaving");
    // All that was sent has arrived; then others may hear that this task is gone.
    outlet_.leave(kLongestLeave);
    listener_->leave(kLongestLeave);
    if (attendance_) attendance_->leave(kLongestLeave);
  }

  void set_statistics(std::function<std::string()> statistics) override {
    const std::lock_guard lock(answers_mutex_);
    statistics_ = std::move(statistics);
  }
  std::string statistics_of(int task) override {
    check_task(task);
    return task == options_.self ? statistics() : ask(caller_, task, kStatisticsMethod, "statistics");
  }
  void set_shutdown(std::function<void()> shutdown) override {
    const std::lock_guard lock(answers_mutex_);
    shutdown_ = std::move(shutdown);
  }
  void shut_down(int task) override {
    check_task(task);
    if (task == options_.self) return shutdown();
    ask(caller_, task, kShutdownMethod, "shutdown");
  }
  Health health_of(int task) override {
    check_task(task);
    if (task == options_.self) return roster_.health();
    wire::HealthReply reply;
    if (!reply.ParseFromString(ask(caller_, task, kHealthMethod, "health"))) {
      fail(ErrorKind::failed, "health of {}: its answer cannot be read", listed(task).name);
    }
    return to_health(reply);
  }

 private:
  // Returns when all have come to the meeting.
  void meet() {
    const auto start = Clock::now();
    std::chrono::duration<double> next_word = std::chrono::seconds(3), next_news = kNews;
    std::size_t told = 0;
    while (!roster_.has_reached_all()) {
      roster_.wait_for_change(std::chrono::milliseconds(100));
      const std::chrono::duration<double> waited = Clock::now() - start;
      check_failure();
      check_lost();
      if (waited > options_.join_timeout && !roster_.has_reached_all()) give_up();
      const Health health = roster_.health();
      if (waited > next_news && options_.self == kMeetingTask) {
        next_news = waited + kNews;
        if (told != health.here.size()) listener_->tell_arrivals();
        told = health.here.size();
      }
      if (waited > next_word) {
        next_word += std::chrono::seconds(10);
        say(fmt::format("{} is waiting for {}", self_.name, describe_wait(health)));
      }
    }
  }

  void check_failure() const {
    const std::string failure = attendance_ ? attendance_->failure() : listener_->failure();
    if (failure.empty()) return;
    std::this_thread::sleep_for(kParting);
    fail(ErrorKind::failed, "{}", failure);
  }

  void check_lost() const {
    const Health health = roster_.health();
    if (health.lost.empty()) return;
    std::this_thread::sleep_for(kParting);
    fail(ErrorKind::failed, "{}: lost {} while waiting for {}", self_.name, fmt::join(health.lost, ", "),
         describe_wait(health));
  }

  [[noreturn]] void give_up() {
    const Health health = roster_.health();
    std::vector<std::string> silent;
    for (int task = 0; task < std::ssize(options_.tasks); ++task) {
      if (!roster_.is_reached(task)) silent.push_back(fmt::format("{} ({})", listed(task).name, listed(task).address));
    }
    std::string reason;
    // Who cannot reach the meeting knows of nobody else.
    if (attendance_ && !roster_.is_reached(kMeetingTask)) {
      silent.resize(1);
      reason = fmt::format("; the others meet there ({})", attendance_->trouble());
    }
    const std::int64_t refused = listener_->refused_calls();
    fail(ErrorKind::failed, "{} did not come within {}; here {}: {}{}{}", fmt::join(silent, ", "),
         format_seconds(options_.join_timeout.count()), health.here.size() == 1 ? "is" : "are",
         fmt::join(health.here, ", "), reason,
         refused == 0 ? ""
         : refused == 1
             ? "; 1 call that did not prove that it knows the job's secret was refused"
             : fmt::format("; {} calls that did not prove that they know the job's secret were refused", refused));
  }

  std::vector<Member> members() const {
    std::vector<Identity> all = roster_.identities();
    all.insert(all.begin() + options_.self, self_);
    std::vector<Member> members;
    std::map<std::string, int> nodes;
    for (const Identity& each : all) {
      const auto [node, is_new] = nodes.try_emplace(each.node_key, static_cast<int>(nodes.size()));
      members.push_back(
          {.world_rank = each.index, .name = each.name, .host = each.host, .pid = each.pid, .node = node->second});
    }
    return members;
  }

  void on_absence() {
    inboxes_.ring_all();
    const std::lock_guard lock(listener_mutex_);
    if (listener_ != nullptr) listener_->tell_absences();
  }

  // Without a goodbye, so that the others lose this task.
  void break_off() {
    if (attendance_) attendance_->break_off();
    listener_->break_off();
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

  const RpcTask& listed(int task) const { return options_.tasks[task]; }
  void check_task(int task) const {
    if (task >= 0 && task < std::ssize(options_.tasks)) return;
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
  const Caller caller_;
  Roster roster_;
  Inboxes inboxes_;
  std::mutex listener_mutex_;  // of its making
  std::unique_ptr<Listener> listener_;
  Outlet outlet_;
  Transport transport_;
  std::optional<Attendance> attendance_;  // of all tasks but the one that holds the meeting
  // Goes before those that have threads: what these notice from then on is their own end, and nobody is told.
  struct Closing {
    RpcWorldOverSockets& world;
    ~Closing() {
      world.roster_.close();
      std::unique_ptr<Listener> listener;  // goes without the mutex
      const std::lock_guard lock(world.listener_mutex_);
      listener.swap(world.listener_);
    }
  } closing_{*this};
  std::unique_ptr<RpcCommunicator> communicator_;
};

}  // namespace

std::unique_ptr<RpcWorld> join(const RpcOptions& options) {
  silence_library();
  return std::make_unique<RpcWorldOverSockets>(options);
}

std::string library_version() { return grpc::Version(); }

}  // namespace trireme::comm::rpc
