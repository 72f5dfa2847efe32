#include "trireme/comm/grpc/roster.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "trireme/base/clock.hpp"
#include "trireme/comm/grpc/proof.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::comm::rpc {
namespace {

std::string describe_process(const Identity& identity) {
  return fmt::format("process {} on {}", identity.pid(), identity.host());
}

}  // namespace

Identity own_identity(const RpcOptions& options) {
  std::string instance;
  for (const unsigned char byte : random_bytes(16)) instance += fmt::format("{:02x}", byte);
  Identity identity;
  identity.set_index(options.self);
  identity.set_name(options.tasks[options.self].name);
  identity.set_host(host_name());
  identity.set_pid(getpid());
  identity.set_instance(instance);
  identity.set_node_key(node_key());
  return identity;
}

Roster::Roster(const RpcOptions& options)
    : tasks_(options.tasks), self_(options.self), log_(options.log), places_(options.tasks.size()) {
  places_[self_].has_joined = true;
}

std::string Roster::admit(const Identity& identity) {
  const std::lock_guard lock(mutex_);
  const auto size = static_cast<int>(tasks_.size());
  if (identity.index() < 0 || identity.index() >= size) {
    return fmt::format("there is no task {}; tasks are 0 to {}", identity.index(), size - 1);
  }
  const std::string& name = tasks_[identity.index()].name;
  if (identity.name() != name) return fmt::format("task {} is {}, not {}", identity.index(), name, identity.name());
  Place& taken = places_[identity.index()];
  const bool is_free = taken.identity.instance().empty() || taken.identity.instance() == identity.instance();
  if (is_free && identity.index() != self_) {
    taken.identity = identity;
    return "";
  }
  const Identity& holder = taken.identity;
  return fmt::format("two processes claim to be {}: {} and {}", name,
                     identity.index() == self_ ? "the one that was asked" : describe_process(holder),
                     describe_process(identity));
}

bool Roster::admit(int task, const std::string& instance) {
  const std::lock_guard lock(mutex_);
  if (task < 0 || task >= std::ssize(places_) || task == self_ || instance.empty()) return false;
  Identity& identity = places_[task].identity;
  if (identity.instance().empty()) identity.set_instance(instance);
  return identity.instance() == instance;
}

std::vector<Identity> Roster::identities() const {
  const std::lock_guard lock(mutex_);
  std::vector<Identity> identities;
  for (const Place& each : places_) {
    if (each.has_joined && !each.identity.instance().empty()) identities.push_back(each.identity);
  }
  return identities;
}

void Roster::mark_joined(int task) {
  {
    const std::lock_guard lock(mutex_);
    places_[task].has_joined = has_changed_ = true;
  }
  changed_.notify_all();
}

void Roster::wait_for_change(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest, [&] { return has_changed_; });
  has_changed_ = false;
}

bool Roster::has_joined(int task) const {
  const std::lock_guard lock(mutex_);
  return places_[task].has_joined;
}

bool Roster::all_joined() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(places_.begin(), places_.end(), [](const Place& place) { return place.has_joined; });
}

bool Roster::is_long_gone(int task) const {
  constexpr std::int64_t kOvertaken = 1'000'000'000;
  const std::int64_t since = places_[task].gone_since.load(std::memory_order_acquire);
  return since != 0 && steady_nanoseconds() - since > kOvertaken;
}

void Roster::leave(int task) { set_gone(task, Presence::left, ""); }

void Roster::lose(int task, const std::string& reason) { set_gone(task, Presence::lost, reason); }

void Roster::set_gone(int task, Presence how, const std::string& reason) {
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || presence(task) != Presence::here) return;
    Place& place = places_[task];
    place.reason = reason;
    place.gone_since.store(steady_nanoseconds(), std::memory_order_release);
    place.presence.store(how, std::memory_order_release);
    line = fmt::format("lost {}: {}", name_of_locked(task), reason);
    has_changed_ = true;
  }
  changed_.notify_all();
  if (log_ && how == Presence::lost) log_(line);
  on_absence_();
}

Presence Roster::presence(int task) const { return places_[task].presence.load(std::memory_order_acquire); }

std::string Roster::describe_absence(int task) const {
  const std::lock_guard lock(mutex_);
  if (presence(task) == Presence::left) return name_of_locked(task) + " has left";
  return fmt::format("lost {}: {}", name_of_locked(task), places_[task].reason);
}

std::string Roster::reason_of(int task) const {
  const std::lock_guard lock(mutex_);
  return places_[task].reason;
}

std::string Roster::name_of(int task) const {
  const std::lock_guard lock(mutex_);
  return name_of_locked(task);
}

std::string Roster::name_of_locked(int task) const {
  const RpcTask& listed = tasks_[task];
  const Identity& identity = places_[task].identity;
  return fmt::format("{} ({})", listed.name, identity.host().empty() ? listed.address : identity.host());
}

Attendance Roster::attendance() const {
  const std::lock_guard lock(mutex_);
  Attendance seen;
  for (std::size_t task = 0; task < places_.size(); ++task) {
    const Presence presence = this->presence(static_cast<int>(task));
    const std::string& name = tasks_[task].name;
    if (presence == Presence::lost) {
      seen.lost.push_back(name);
    } else if (places_[task].has_joined && presence == Presence::here) {
      seen.here.push_back(name);
    } else if (presence == Presence::here) {
      seen.missing.push_back(fmt::format("{} ({})", name, tasks_[task].address));
    }
  }
  return seen;
}

void Roster::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void Roster::set_on_absence(std::function<void()> on_absence) { on_absence_ = std::move(on_absence); }

}  // namespace trireme::comm::rpc
