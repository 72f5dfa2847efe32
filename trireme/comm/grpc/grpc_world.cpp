#include "trireme/comm/grpc/grpc_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/rpc_communicator.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::comm::rpc {
namespace {

constexpr std::chrono::milliseconds kLongestLeave{10000};
// A refused task stays for a moment, so that the others learn the reason from it.
constexpr std::chrono::milliseconds kRefusalDelay{500};
// How often waiting tasks are told who has joined.
constexpr std::chrono::seconds kAnnounceEvery{1};
constexpr std::int64_t kLargestPart = 32 << 20;

// Forwards lines to a log that may be slow or blocked, without blocking the transport's threads.
class AsyncLog {
 public:
  using Log = std::function<void(const std::string&)>;

  explicit AsyncLog(Log log) : log_(std::move(log)) {
    if (log_) thread_ = std::thread([this] { pass_on(); });
  }
  AsyncLog(const AsyncLog&) = delete;
  AsyncLog& operator=(const AsyncLog&) = delete;
  // Returns when all lines are written.
  ~AsyncLog() {
    if (!log_) return;
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  // Never blocks; drops excess lines while the log is stuck.
  void write(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      if (lines_.size() < kMostLines) lines_.push_back(line);
    }
    changed_.notify_one();
  }

 private:
  static constexpr std::size_t kMostLines = 1000;

  void pass_on() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !lines_.empty() || is_closed_; });
      if (lines_.empty()) return;
      const std::string line = std::move(lines_.front());
      lines_.pop_front();
      lock.unlock();
      log_(line);
      lock.lock();
    }
  }

  const Log log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool is_closed_ = false;
  std::thread thread_;
};

const RpcOptions& check(const RpcOptions& options) {
  const auto count = static_cast<int>(options.tasks.size());
  if (options.self < 0 || options.self >= count) {
    bad_input("task {} of a job over gRPC: the list has {} tasks", options.self, count);
  }
  std::set<std::string> names, addresses;
  for (const RpcTask& task : options.tasks) {
    if (!names.insert(task.name).second) bad_input("two tasks have the name '{}'", task.name);
    if (!addresses.insert(task.address).second)
      bad_input("{}: another task has the address {}", task.name, task.address);
  }
  if (options.secret.empty()) bad_input("a job over gRPC needs a secret, the same for all its tasks");
  if (options.streams < 1 || options.streams > 64) bad_input("{} streams: must be 1 to 64", options.streams);
  if (options.part_bytes < 1 || options.part_bytes > kLargestPart) {
    bad_input("parts of {} bytes: must be 1 to {}", options.part_bytes, kLargestPart);
  }
  return options;
}

std::string describe_transport(const RpcOptions& options) {
  const std::string version = library_version();
  return fmt::format("gRPC {} over TCP, {} {}{}", version.substr(0, version.rfind('.')), options.streams,
                     options.streams == 1 ? "stream" : "streams", options.tls.certificate.empty() ? "" : ", TLS");
}

RpcOptions with_async_log(RpcOptions options, AsyncLog& log) {
  if (options.log) options.log = [&](const std::string& line) { log.write(line); };
  return options;
}

std::string describe_wait(const Attendance& seen) {
  return fmt::format("{}; here {}: {}", fmt::join(seen.missing, ", "), seen.here.size() == 1 ? "is" : "are",
                     fmt::join(seen.here, ", "));
}

class GrpcWorld : public World {
 public:
  explicit GrpcWorld(const RpcOptions& options)
      : async_log_(options.log),
        options_(with_async_log(check(options), async_log_)),
        tls_(read_tls(options_.tls)),
        self_(own_identity(options_)),
        caller_{options_, tls_, self_},
        roster_(options_),
        sender_(caller_, roster_),
        transport_{roster_, inboxes_, sender_, options_.self, describe_transport(options_), [this] { break_off(); }} {
    roster_.set_on_absence([this] { on_absence(); });
    {
      auto listener = std::make_unique<Listener>(options_, tls_, self_, roster_, inboxes_);
      const std::lock_guard lock(listener_mutex_);
      listener_ = std::move(listener);
    }
    if (options_.self != kMembershipTask) {
      membership_client_.emplace(caller_, roster_, sender_.queue());
      membership_client_->join();
    }
    wait_for_all();
    std::vector<int> tasks(options_.tasks.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    communicator_ = std::make_unique<RpcCommunicator>(transport_, std::move(tasks), options_.self, 0);
    communicator_->set_members(members());
  }

  Communicator& communicator() override { return *communicator_; }

  void leave() override {
    // Everything sent has arrived before others learn that this task is gone.
    sender_.leave(kLongestLeave);
    listener_->leave(kLongestLeave);
    if (membership_client_) membership_client_->leave(kLongestLeave);
  }

 private:
  // Returns when all have joined.
  void wait_for_all() {
    const auto start = SteadyClock::now();
    std::chrono::duration<double> next_line = std::chrono::seconds(3), next_announcement = kAnnounceEvery;
    std::size_t announced = 0;
    while (!roster_.all_joined()) {
      roster_.wait_for_change(std::chrono::milliseconds(100));
      const std::chrono::duration<double> waited = SteadyClock::now() - start;
      check_failure();
      check_lost();
      if (waited > options_.join_timeout && !roster_.all_joined()) give_up();
      const Attendance seen = roster_.attendance();
      if (waited > next_announcement && options_.self == kMembershipTask) {
        next_announcement = waited + kAnnounceEvery;
        if (announced != seen.here.size()) listener_->announce_arrivals();
        announced = seen.here.size();
      }
      if (waited > next_line) {
        next_line += std::chrono::seconds(10);
        if (options_.log) options_.log(fmt::format("{} is waiting for {}", self_.name(), describe_wait(seen)));
      }
    }
  }

  void check_failure() const {
    const std::string failure = membership_client_ ? membership_client_->failure() : listener_->failure();
    if (failure.empty()) return;
    std::this_thread::sleep_for(kRefusalDelay);
    fail(ErrorKind::failed, "{}", failure);
  }

  void check_lost() const {
    const Attendance seen = roster_.attendance();
    if (seen.lost.empty()) return;
    std::this_thread::sleep_for(kRefusalDelay);
    fail(ErrorKind::failed, "{}: lost {} while waiting for {}", self_.name(), fmt::join(seen.lost, ", "),
         describe_wait(seen));
  }

  [[noreturn]] void give_up() {
    const Attendance seen = roster_.attendance();
    std::vector<std::string> silent;
    for (int task = 0; task < std::ssize(options_.tasks); ++task) {
      if (!roster_.has_joined(task)) silent.push_back(fmt::format("{} ({})", listed(task).name, listed(task).address));
    }
    std::string reason;
    // A task that cannot reach task 0 knows of nobody else.
    if (membership_client_ && !roster_.has_joined(kMembershipTask)) {
      silent.resize(1);
      reason = fmt::format("; the others join through it ({})", membership_client_->last_error());
    }
    const std::int64_t refused = listener_->refused_calls();
    fail(ErrorKind::failed, "{} did not join within {}; here {}: {}{}{}", fmt::join(silent, ", "),
         format_seconds(options_.join_timeout.count()), seen.here.size() == 1 ? "is" : "are",
         fmt::join(seen.here, ", "), reason,
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
      const auto [node, is_new] = nodes.try_emplace(each.node_key(), static_cast<int>(nodes.size()));
      members.push_back({.world_rank = each.index(),
                         .name = each.name(),
                         .host = each.host(),
                         .pid = each.pid(),
                         .node = node->second});
    }
    return members;
  }

  void on_absence() {
    inboxes_.wake_all();
    const std::lock_guard lock(listener_mutex_);
    if (listener_ != nullptr) listener_->announce_absences();
  }

  // Without leaving first, so that the others lose this task.
  void break_off() {
    if (membership_client_) membership_client_->break_off();
    listener_->break_off();
  }

  const RpcTask& listed(int task) const { return options_.tasks[task]; }

  AsyncLog async_log_;
  const RpcOptions options_;
  const Tls tls_;
  const Identity self_;
  const Caller caller_;
  Roster roster_;
  Inboxes inboxes_;
  std::mutex listener_mutex_;  // guards its creation
  std::unique_ptr<Listener> listener_;
  Sender sender_;
  Transport transport_;
  std::optional<MembershipClient> membership_client_;  // on all tasks without the server
  // Destroyed before members with threads: what these notice afterwards is our own end and is not reported.
  struct Closing {
    GrpcWorld& world;
    ~Closing() {
      world.roster_.close();
      std::unique_ptr<Listener> listener;  // destroyed without the mutex
      const std::lock_guard lock(world.listener_mutex_);
      listener.swap(world.listener_);
    }
  } closing_{*this};
  std::unique_ptr<RpcCommunicator> communicator_;
};

}  // namespace

std::unique_ptr<World> join(const RpcOptions& options) {
  silence_library();
  return std::make_unique<GrpcWorld>(options);
}

std::string library_version() { return grpc::Version(); }

}  // namespace trireme::comm::rpc
