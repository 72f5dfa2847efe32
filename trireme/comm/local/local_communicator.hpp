// Ranks as threads: a rank's messages lie in its mailbox until it asks for them. A send copies its data and is done, so
// that no rank ever touches the memory of another, which may be gone after an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

// What all ranks of one run share.
class LocalWorld {
 public:
  explicit LocalWorld(int size);

  struct Address {
    int from = 0;
    int context = 0;
    int tag = 0;
    bool operator==(const Address&) const = default;
  };
  void deliver(int to, const Address& address, std::span<const std::byte> data);
  // Takes the oldest message of this address out of a mailbox; false if there is none.
  bool take(int rank, const Address& address, std::vector<std::byte>& data);

  // The first failure is kept; from then on failed() is true for everybody.
  void fail(int rank, std::exception_ptr error);
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
    std::vector<std::vector<std::byte>> spare;  // memory of messages that were taken
  };
  std::vector<Mailbox> mailboxes_;
  std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  int failed_rank_ = -1;
  std::exception_ptr error_;
};

class LocalCommunicator : public Communicator {
 public:
  // The ranks are places in the world.
  LocalCommunicator(std::shared_ptr<LocalWorld> world, std::vector<int> places, int rank, int context);

  std::string_view protocol() const override { return "local"; }
  [[noreturn]] void abort(int code) override;
  using Communicator::introduce;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;
  void check_group() const override;

 private:
  struct State {
    LocalWorld::Address address;
    std::span<std::byte> data;
    bool complete = false;
  };
  int place(int rank) const { return places_[rank]; }
  State& state(int slot);
  void match();

  std::shared_ptr<LocalWorld> world_;
  std::vector<int> places_;
  int context_;
  std::vector<State> states_;                 // by slot
  std::vector<int> waiting_;                  // slots of receives, in the order in which they were posted
  std::vector<std::byte> arrived_;            // the message that match() looks at
  std::vector<LocalWorld::Address> without_;  // those for which it found none
};

}  // namespace trireme::comm
