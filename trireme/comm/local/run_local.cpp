#include "trireme/comm/local/run_local.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/comm/host.hpp"

namespace trireme::comm {
namespace {

// Shared by all ranks of one run: messages wait in the receiver's mailbox. A send copies its data and is done, so no
// rank touches the memory of another, which may be gone after an error.
class LocalWorld {
 public:
  explicit LocalWorld(int size) : mailboxes_(size) {}

  struct Address {
    int from = 0;
    int context = 0;
    int tag = 0;
    bool operator==(const Address&) const = default;
  };

  void deliver(int to, const Address& address, std::span<const std::byte> data) {
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

  // Takes the oldest message with this address; false if there is none.
  bool take(int rank, const Address& address, std::vector<std::byte>& data) {
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

  // Keeps the first failure; from then on failed() is true for everybody.
  void fail(int rank, std::exception_ptr error) {
    const std::lock_guard lock(failure_mutex_);
    if (failed()) return;
    failed_rank_ = rank;
    error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  int failed_rank() const { return failed_rank_; }
  std::exception_ptr error() const { return error_; }

 private:
  struct Message {
    Address address;
    std::vector<std::byte> data;
  };
  struct Mailbox {
    std::mutex mutex;
    std::vector<Message> messages;
    std::vector<std::vector<std::byte>> spare;  // memory of received messages, for reuse
  };
  std::vector<Mailbox> mailboxes_;
  std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  int failed_rank_ = -1;
  std::exception_ptr error_;
};

class LocalCommunicator : public Communicator {
 public:
  // `places` are the ranks in the world, by rank.
  LocalCommunicator(std::shared_ptr<LocalWorld> world, std::vector<int> places, int rank, int context)
      : Communicator(rank, static_cast<int>(places.size())),
        world_(std::move(world)),
        places_(std::move(places)),
        context_(context) {}

  std::string_view protocol() const override { return "local"; }
  using Communicator::introduce;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override {
    world_->deliver(places_[to], {places_[rank()], context_, tag}, data);
    state_at(states_, slot) = {.address = {}, .data = {}, .complete = true};
  }

  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override {
    state_at(states_, slot) = {.address = {places_[from], context_, tag}, .data = data, .complete = false};
    waiting_.push_back(slot);
  }

  bool test(int slot) override {
    check_group();
    if (!states_[slot].complete) match();
    return states_[slot].complete;
  }

  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override {
    std::vector<int> places;
    for (const int rank : ranks) places.push_back(places_[rank]);
    const auto own = std::find(ranks.begin(), ranks.end(), rank());
    return std::make_unique<LocalCommunicator>(world_, std::move(places), static_cast<int>(own - ranks.begin()),
                                               context);
  }

  void check_group() const override {
    if (world_->failed()) fail(ErrorKind::failed, "{}: rank {} has failed", name_of(rank()), world_->failed_rank());
  }

 private:
  struct State {
    LocalWorld::Address address;
    std::span<std::byte> data;
    bool complete = false;
  };

  // Messages of an address go to receives in posting order, even if one arrives right after a check of an earlier one.
  void match() {
    without_.clear();
    std::erase_if(waiting_, [&](int slot) {
      State& receive = states_[slot];
      if (std::find(without_.begin(), without_.end(), receive.address) != without_.end()) return false;
      if (!world_->take(places_[rank()], receive.address, arrived_)) {
        without_.push_back(receive.address);
        return false;
      }
      if (arrived_.size() != receive.data.size()) {
        fail(ErrorKind::failed, "{}: received {} bytes; the sizes of send and receive must be equal", describe(slot),
             arrived_.size());
      }
      std::copy(arrived_.begin(), arrived_.end(), receive.data.begin());
      receive.complete = true;
      return true;
    });
  }

  std::shared_ptr<LocalWorld> world_;
  std::vector<int> places_;
  int context_;
  std::vector<State> states_;                 // by slot
  std::vector<int> waiting_;                  // slots of receives, in posting order
  std::vector<std::byte> arrived_;            // the message that match() handles
  std::vector<LocalWorld::Address> without_;  // addresses for which it found none
};

void run_rank(const std::shared_ptr<LocalWorld>& world, const LocalOptions& options, int rank,
              const std::function<void(Communicator&)>& body) {
  std::vector<int> places(options.size);
  std::iota(places.begin(), places.end(), 0);
  LocalCommunicator communicator(world, places, rank, 0);
  try {
    const bool is_divided = options.ranks_per_node > 0 || !options.nodes.empty();
    const int node = !options.nodes.empty()       ? options.nodes.at(rank)
                     : options.ranks_per_node > 0 ? rank / options.ranks_per_node
                                                  : 0;
    const std::string host = is_divided ? fmt::format("node{}", node) : host_name();
    communicator.introduce(host, fmt::format("{}", node));
    body(communicator);
  } catch (...) {
    world->fail(rank, std::current_exception());
  }
}

}  // namespace

void run_local(const LocalOptions& options, const std::function<void(Communicator&)>& body) {
  if (options.size < 1) bad_input("{} ranks: at least 1 is needed", options.size);
  const auto world = std::make_shared<LocalWorld>(options.size);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < options.size; ++rank) {
      ranks.emplace_back([&, rank] { run_rank(world, options, rank, body); });
    }
  }
  if (!world->failed()) return;
  try {
    std::rethrow_exception(world->error());
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("rank {}: {}", world->failed_rank(), error.what()));
  }
}

std::unique_ptr<Communicator> make_single() {
  auto single = std::make_unique<LocalCommunicator>(std::make_shared<LocalWorld>(1), std::vector<int>{0}, 0, 0);
  single->introduce(host_name(), "0");
  return single;
}

}  // namespace trireme::comm
