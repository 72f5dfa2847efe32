#include "trireme/comm/local/local_communicator.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::comm {

LocalWorld::LocalWorld(int size) : mailboxes_(size) {}

void LocalWorld::deliver(int to, const Address& address, std::span<const std::byte> data) {
  Mailbox& mailbox = mailboxes_[to];
  const std::lock_guard lock(mailbox.mutex);
  std::vector<std::byte> copy;
  if (!mailbox.spare.empty()) {
    copy = std::move(mailbox.spare.back());
    mailbox.spare.pop_back();
  }
  copy.assign(data.begin(), data.end());
  mailbox.messages.push_back({address, std::move(copy)});
}

bool LocalWorld::take(int rank, const Address& address, std::vector<std::byte>& data) {
  Mailbox& mailbox = mailboxes_[rank];
  const std::lock_guard lock(mailbox.mutex);
  const auto found = std::find_if(mailbox.messages.begin(), mailbox.messages.end(),
                                  [&](const Message& message) { return message.address == address; });
  if (found == mailbox.messages.end()) return false;
  std::swap(data, found->data);
  mailbox.spare.push_back(std::move(found->data));
  mailbox.messages.erase(found);
  return true;
}

void LocalWorld::fail(int rank, std::exception_ptr error) {
  const std::lock_guard lock(failure_mutex_);
  if (failed()) return;
  failed_rank_ = rank;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

LocalCommunicator::LocalCommunicator(std::shared_ptr<LocalWorld> world, std::vector<int> places, int rank, int context)
    : Communicator(rank, static_cast<int>(places.size())),
      world_(std::move(world)),
      places_(std::move(places)),
      context_(context) {}

void LocalCommunicator::abort(int code) {
  fail(ErrorKind::failed, "{} ended the job with code {}", name_of(rank()), code);
}

void LocalCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  world_->deliver(place(to), {place(rank()), context_, tag}, data);
  state(slot) = {.address = {}, .data = {}, .complete = true};
}

void LocalCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  state(slot) = {.address = {place(from), context_, tag}, .data = data, .complete = false};
  waiting_.push_back(slot);
}

bool LocalCommunicator::test(int slot) {
  check_group();
  if (!state(slot).complete) match();
  return state(slot).complete;
}

// Messages of one address go to receives in the order in which these were posted. While this goes on more may come, and
// they must not go to a receive when an earlier one has just found nothing.
void LocalCommunicator::match() {
  without_.clear();
  std::erase_if(waiting_, [&](int slot) {
    State& receive = state(slot);
    if (std::find(without_.begin(), without_.end(), receive.address) != without_.end()) return false;
    if (!world_->take(place(rank()), receive.address, arrived_)) {
      without_.push_back(receive.address);
      return false;
    }
    if (arrived_.size() != receive.data.size()) {
      fail(ErrorKind::failed, "{}: {} bytes came; the sizes of send and receive must be equal", describe(slot),
           arrived_.size());
    }
    std::copy(arrived_.begin(), arrived_.end(), receive.data.begin());
    receive.complete = true;
    return true;
  });
}

std::unique_ptr<Communicator> LocalCommunicator::make_group(const std::vector<int>& ranks, int context) {
  std::vector<int> places;
  for (const int rank : ranks) places.push_back(place(rank));
  const auto own = std::find(ranks.begin(), ranks.end(), rank());
  return std::make_unique<LocalCommunicator>(world_, std::move(places), static_cast<int>(own - ranks.begin()), context);
}

void LocalCommunicator::check_group() const {
  if (world_->failed()) fail(ErrorKind::failed, "{}: rank {} has failed", name_of(rank()), world_->failed_rank());
}

LocalCommunicator::State& LocalCommunicator::state(int slot) {
  if (static_cast<std::size_t>(slot) >= states_.size()) states_.resize(static_cast<std::size_t>(slot) + 1);
  return states_[slot];
}

}  // namespace trireme::comm
