#include "trireme/comm/grpc/rpc_communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/comm/backoff.hpp"
#include "trireme/comm/grpc/membership.hpp"

namespace trireme::comm::rpc {
namespace {

constexpr std::chrono::milliseconds kLongestDoze{10};
constexpr std::chrono::milliseconds kLongestAbandon{3000};
constexpr std::chrono::milliseconds kLongestRetire{10000};

class CopiedPayload : public Payload {
 public:
  explicit CopiedPayload(std::span<const std::byte> data) : data_(data.begin(), data.end()) {}
  std::size_t size() const override { return data_.size(); }
  void copy_to(std::byte* target) const override { std::copy(data_.begin(), data_.end(), target); }

 private:
  std::vector<std::byte> data_;
};

}  // namespace

// The others lose this task, because its streams end without an end frame; this task loses nobody.
void Transport::abandon() {
  if (is_abandoned.exchange(true)) return;
  roster.close();
  inboxes.close_all();
  break_off();
  sender.break_off(kLongestAbandon);
  inboxes.wake_all();
}

RpcCommunicator::RpcCommunicator(Transport& transport, std::vector<int> tasks, int rank, int context)
    : Communicator(rank, static_cast<int>(tasks.size())),
      transport_(transport),
      tasks_(std::move(tasks)),
      context_(context),
      inbox_(transport.inboxes.get(context)) {}

RpcCommunicator::~RpcCommunicator() { inbox_->close(); }

// Every completion notifies; the timeout covers everything else.
void RpcCommunicator::doze(Backoff&) { inbox_->notifier()->wait(kLongestDoze); }

void RpcCommunicator::abandon() {
  interrupt();
  const bool is_of_epoch = context_ >= kContextsPerEpoch;
  if (!is_of_epoch || !retire()) transport_.abandon();
}

bool RpcCommunicator::retire() {
  interrupt();
  const int first = context_ / kContextsPerEpoch * kContextsPerEpoch;
  if (first == 0) fail(ErrorKind::failed, "only communicators that succeed another one can be retired");
  const int next = first + kContextsPerEpoch;
  transport_.inboxes.close_epochs_below(next);
  return transport_.sender.drop(first, next, kLongestRetire);
}

void RpcCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  const FrameHeader header{
      .context = context_, .tag = tag, .sequence = sequences_[{to, tag}]++, .total_bytes = data.size()};
  State& sending = state_at(states_, slot);
  sending = {.peer = task(to), .send = nullptr, .receive = nullptr};
  if (to == rank()) {
    send_to_self(header, data);
    return;
  }
  if (data.size() > Sender::kCopiedBytes) sending.send = std::make_shared<PendingSend>(inbox_->notifier());
  sending.has_failed = !transport_.sender.post(task(to), header, data, sending.send);
}

void RpcCommunicator::send_to_self(const FrameHeader& header, std::span<const std::byte> data) {
  if (inbox_->deliver(transport_.self, header, std::make_unique<CopiedPayload>(data))) return;
  fail(ErrorKind::failed, "{}: a message to itself contradicts earlier ones", name_of(rank()));
}

void RpcCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  state_at(states_, slot) = {.peer = task(from), .send = nullptr, .receive = inbox_->post(task(from), tag, data)};
}

bool RpcCommunicator::test(int slot) {
  const State& tested = states_[slot];
  if (transport_.is_abandoned) fail(ErrorKind::failed, "{}: given up because this task ends early", describe(slot));
  return tested.receive != nullptr ? test_receive(slot, tested) : test_send(slot, tested);
}

// A send fails only if gRPC could not write it: a delivered one is complete even if its receiver has left since.
bool RpcCommunicator::test_send(int slot, const State& tested) const {
  if (tested.has_failed) fail_absent(slot, tested.peer);
  if (tested.send == nullptr) return true;
  if (!tested.send->is_complete()) return false;
  if (tested.send->has_failed()) fail_absent(slot, tested.peer);
  return true;
}

bool RpcCommunicator::test_receive(int slot, const State& tested) {
  const bool is_here = transport_.roster.presence(tested.peer) == Presence::here;  // before looking for the message
  if (tested.receive->is_complete.load(std::memory_order_acquire)) {
    if (tested.receive->came_bytes == tested.receive->data.size()) return true;
    fail(ErrorKind::failed, "{}: received {} bytes; the sizes of send and receive must be equal", describe(slot),
         tested.receive->came_bytes);
  }
  if (is_here) {
    // Nobody else would report its end, so notice it by a connection of our own.
    if (transport_.roster.presence(kMembershipTask) != Presence::here) transport_.sender.open(tested.peer);
    return false;
  }
  if (!transport_.roster.is_long_gone(tested.peer) || !inbox_->withdraw(*tested.receive)) return false;
  fail_absent(slot, tested.peer);
}

void RpcCommunicator::fail_absent(int slot, int peer) const {
  fail(ErrorKind::failed, "{}: {}", describe(slot), transport_.roster.describe_absence(peer));
}

std::unique_ptr<Communicator> RpcCommunicator::make_group(const std::vector<int>& ranks, int context) {
  std::vector<int> tasks;
  for (const int rank : ranks) tasks.push_back(task(rank));
  const auto own = std::find(ranks.begin(), ranks.end(), rank());
  return std::make_unique<RpcCommunicator>(transport_, std::move(tasks), static_cast<int>(own - ranks.begin()),
                                           context);
}

}  // namespace trireme::comm::rpc
