#include "trireme/comm/communicator.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm {
namespace {

constexpr const char* kSend = "send";
constexpr const char* kReceive = "receive";
constexpr const char* kLibraryAllReduce = "library all-reduce";

// What a rank sends to the others about itself.
struct Introduction {
  std::array<char, 128> host{};
  std::array<char, 256> node_key{};
  std::int64_t pid = 0;
};

template <std::size_t kSize>
void put_text(std::array<char, kSize>& to, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), kSize - 1), to.begin());
}

struct SplitRequest {
  int color = 0;
  int key = 0;
  int last_context = 0;
};

}  // namespace

Communicator::Communicator(int rank, int size) : rank_(rank), size_(size), last_context_(std::make_shared<int>(0)) {}

Transfer Communicator::start_send(std::span<const std::byte> data, int to, int tag) {
  check_peer(kSend, to, tag);
  const int slot = take_slot(kSend, to, std::ssize(data));
  post_send(slot, data, to, tag);
  return {slot, slots_[slot].generation};
}

Transfer Communicator::start_receive(std::span<std::byte> data, int from, int tag) {
  check_peer(kReceive, from, tag);
  const int slot = take_slot(kReceive, from, std::ssize(data));
  post_receive(slot, data, from, tag);
  return {slot, slots_[slot].generation};
}

Transfer Communicator::start_library_all_reduce(std::span<float> values, Reduction reduction) {
  const int slot = take_slot(kLibraryAllReduce, -1, static_cast<std::int64_t>(values.size_bytes()));
  post_library_all_reduce(slot, values, reduction);
  return {slot, slots_[slot].generation};
}

void Communicator::post_library_all_reduce(int, std::span<float>, Reduction) {
  fail(ErrorKind::unavailable, "protocol '{}' has no library all-reduce", protocol());
}

bool Communicator::done(Transfer transfer) {
  if (transfer.slot < 0) return true;
  Slot& slot = slots_[transfer.slot];
  if (slot.generation != transfer.generation) return true;
  if (!test(transfer.slot)) return false;
  ++slot.generation;
  free_slots_.push_back(transfer.slot);
  return true;
}

void Communicator::wait(Transfer transfer) {
  wait(transfer, [] {});
}

void Communicator::wait(Transfer transfer, const std::function<void()>& meanwhile) {
  using namespace std::chrono_literals;
  std::chrono::duration<double> next_check = 100ms;
  Backoff backoff;
  while (!done(transfer)) {
    meanwhile();
    doze(backoff);
    const auto waited = backoff.waited();
    if (waited < std::min(next_check, timeout_)) continue;
    check_peers();
    next_check = waited + 100ms;
    if (waited < timeout_ || done(transfer)) continue;
    const Slot& slot = slots_[transfer.slot];
    check_wait(slot.operation, slot.peer, slot.bytes, waited);
  }
}

std::string Communicator::describe_absence(int rank) const {
  return presence(rank) == Presence::left ? name_of(rank) + " has left" : "lost " + name_of(rank);
}

void Communicator::doze(Backoff& backoff) { backoff.pause(); }

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  const auto requests = all_gather_value(*this, SplitRequest{color, key, *last_context_});
  // Unique among all communicators of these ranks.
  int context = 0;
  for (const SplitRequest& request : requests) context = std::max(context, request.last_context + 1);
  *last_context_ = context;
  if (color < 0) return nullptr;

  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if (requests[rank].color == color) ranks.push_back(rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return requests[a].key < requests[b].key; });
  return make_member_group(ranks, context);
}

std::unique_ptr<Communicator> Communicator::subgroup(const std::vector<int>& ranks) {
  for (int rank = 0; rank < size_; ++rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) left_behind_.insert(rank);
  }
  return make_member_group(ranks, ++*last_context_);
}

std::unique_ptr<Communicator> Communicator::successor(const std::vector<int>& ranks, int epoch) {
  std::unique_ptr<Communicator> next = make_member_group(ranks, epoch * kContextsPerEpoch);
  next->is_of_epoch_ = true;
  next->last_context_ = std::make_shared<int>(epoch * kContextsPerEpoch);  // ranks may differ in those of older groups
  return next;
}

bool Communicator::retire() {
  interrupt();
  return true;
}

std::unique_ptr<Communicator> Communicator::make_member_group(const std::vector<int>& ranks, int context) {
  std::unique_ptr<Communicator> group = make_group(ranks, context);
  std::vector<Member> members;
  for (const int rank : ranks) members.push_back(members_[rank]);
  group->set_members(std::move(members));
  group->last_context_ = last_context_;
  group->timeout_ = timeout_;
  group->context_ = context_;
  group->judge_ = judge_;
  group->is_of_epoch_ = is_of_epoch_;
  if (is_of_epoch_) group->interrupted_ = interrupted_;
  return group;
}

void Communicator::introduce(const std::string& host, const std::string& node_key) {
  Introduction mine;
  put_text(mine.host, host);
  put_text(mine.node_key, node_key);
  mine.pid = getpid();
  std::vector<Member> members;
  std::map<std::string, int> nodes;
  for (const Introduction& other : all_gather_value(*this, mine)) {
    const auto [node, is_new] = nodes.try_emplace(other.node_key.data(), static_cast<int>(nodes.size()));
    members.push_back({.world_rank = static_cast<int>(members.size()),
                       .name = {},
                       .host = other.host.data(),
                       .pid = other.pid,
                       .node = node->second});
  }
  set_members(std::move(members));
}

void Communicator::set_members(std::vector<Member> members) { members_ = std::move(members); }

void Communicator::check_peers() const {
  if (interrupted_->load(std::memory_order_acquire)) fail(ErrorKind::failed, "{}: interrupted", name_of(rank_));
  check_group();
  // Collectives wait for ranks that wait for others, so one lost rank fails all.
  for (int rank = 0; rank < size_; ++rank) {
    if (presence(rank) == Presence::lost) fail(ErrorKind::failed, "{}: {}", name_of(rank_), describe_absence(rank));
  }
  if (members_.empty()) return;
  for (int rank = 0; rank < size_; ++rank) {
    const Member& member = members_[rank];
    if (member.node != self().node || member.pid == self().pid || presence(rank) == Presence::left) continue;
    if (left_behind_.contains(rank)) continue;
    if (kill(static_cast<pid_t>(member.pid), 0) == 0 || errno != ESRCH) continue;
    fail(ErrorKind::failed, "{}: {} (process {}) ended while others were waiting for it{}", name_of(rank_),
         name_of(rank), member.pid, context_.empty() ? "" : fmt::format(" ({})", context_));
  }
}

void Communicator::check_wait(std::string_view operation, int peer, std::int64_t bytes,
                              std::chrono::duration<double> waited) const {
  if (waited < timeout_) return;
  const std::string who = judge_ ? judge_() : "the other side";
  if (who.empty()) return;
  fail(ErrorKind::failed,
       "{}: {} of {} with {} did not complete within {}{}; {} is stopped, stuck or unreachable, or the timeout is too "
       "short (--comm-timeout)",
       name_of(rank_), operation, format_bytes(static_cast<double>(bytes)),
       peer < 0 ? fmt::format("all {} ranks", size_) : name_of(peer), format_seconds(waited.count()),
       context_.empty() ? "" : fmt::format(" ({})", context_), who);
}

std::string Communicator::name_of(int rank) const {
  if (members_.empty()) return fmt::format("rank {}", rank);
  const Member& member = members_[rank];
  if (!member.name.empty()) return fmt::format("{} ({})", member.name, member.host);
  return fmt::format("rank {} ({})", member.world_rank, member.host);
}

std::string Communicator::describe(int slot) const {
  const Slot& described = slots_[slot];
  return fmt::format("{}: {} of {} with {}{}", name_of(rank_), described.operation,
                     format_bytes(static_cast<double>(described.bytes)),
                     described.peer < 0 ? "all ranks" : name_of(described.peer),
                     context_.empty() ? "" : fmt::format(" ({})", context_));
}

int Communicator::take_slot(const char* operation, int peer, std::int64_t bytes) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
    free_slots_.reserve(slots_.capacity());
  }
  const int index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  slot.operation = operation;
  slot.peer = peer;
  slot.bytes = bytes;
  return index;
}

void Communicator::check_peer(const char* operation, int peer, int tag) const {
  if (peer < 0 || peer >= size_) {
    bad_input("{} with rank {}: ranks are 0 to {}", operation, peer, size_ - 1);
  }
  if (tag < 0 || tag >= kTags + kCollectiveTags)
    bad_input("{} with tag {}: tags are 0 to {}", operation, tag, kTags - 1);
}

}  // namespace trireme::comm
