// What one rank has to send to another, the most urgent first. Few messages are under way at a time, so that something
// urgent does not stand in line behind all that was there before it. Used by the server for each worker and by a worker
// for each server.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

class Outbox {
 public:
  Outbox(comm::Communicator& communicator, int to) : communicator_(&communicator), to_(to) {}

  // Messages of equal priority go in the order in which they came; a lower number goes first. The memory of the
  // elements has to stay as it is until they are sent; `keep` is held until then.
  void add(std::int64_t priority, const Header& header, std::span<const std::byte> elements = {},
           std::shared_ptr<void> keep = nullptr);
  // Moves things along; true if a message was begun or completed. Throws what the communicator does.
  bool progress();
  bool empty() const { return waiting_.empty() && under_way_.empty(); }
  std::int64_t bytes_sent() const { return bytes_sent_; }  // of variables and gradients

 private:
  struct Message {
    std::int64_t priority = 0;
    std::uint64_t number = 0;
    Header header;
    std::span<const std::byte> elements;
    std::shared_ptr<void> keep;
    comm::Transfer header_transfer, elements_transfer;
  };
  static bool is_later(const Message& a, const Message& b);
  void begin(Message message);

  comm::Communicator* communicator_;
  int to_;
  std::uint64_t count_ = 0;
  std::int64_t bytes_sent_ = 0;
  std::vector<Message> waiting_;   // a heap
  std::deque<Message> under_way_;  // deque: what is sent from stays where it is
};

}  // namespace trireme::ps
