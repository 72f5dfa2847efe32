// Messages between one rank and another, in both directions: what is received comes in order, each header with the
// elements that follow it; what is sent goes by urgency. Used by the server for each worker and by a worker for each
// server.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

// Receives elements into memory that the caller names when it has seen the header.
class MessageReceiver {
 public:
  MessageReceiver(comm::Communicator& communicator, int from) : communicator_(&communicator), from_(from) {}

  enum class State : std::uint8_t { waiting, header, elements };
  // Moves things along. header: one has come, and the caller either calls expect() or next(). elements: all that
  // expect() was told about are there, and the caller calls next(). Throws what the communicator does.
  State progress();
  const Header& header() const { return header_; }
  void expect(std::span<std::byte> memory);
  void next() { state_ = Internal::idle; }
  std::int64_t bytes_received() const { return bytes_received_; }  // of elements

 private:
  enum class Internal : std::uint8_t { idle, header_under_way, header_here, elements_under_way };

  comm::Communicator* communicator_;
  int from_;
  Internal state_ = Internal::idle;
  Header header_;
  comm::Transfer transfer_;
  std::int64_t expected_ = 0, bytes_received_ = 0;
};

// Sends the most urgent first. Few messages are under way at a time, so that something urgent does not stand in line
// behind all that was there before it.
class MessageSender {
 public:
  MessageSender(comm::Communicator& communicator, int to) : communicator_(&communicator), to_(to) {}

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
