// Messages between a server and a worker: received in order, each header with its elements; sent by urgency.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

// Receives elements into memory that the caller names after seeing the header.
class MessageReceiver {
 public:
  MessageReceiver(comm::Communicator& communicator, int from) : communicator_(&communicator), from_(from) {}

  enum class State : std::uint8_t { waiting, header, elements };
  // Drives the receive. header: call expect() or next(). elements: all have arrived, call next(). Throws on failure.
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

// Sends the most urgent first, few at a time, so that an urgent message does not queue behind all earlier ones.
class MessageSender {
 public:
  MessageSender(comm::Communicator& communicator, int to) : communicator_(&communicator), to_(to) {}

  // Lower priority numbers go first, equal ones in order. Elements must not change until sent; `keep` is held so long.
  void add(std::int64_t priority, const Header& header, std::span<const std::byte> elements = {},
           std::shared_ptr<void> keep = nullptr);
  bool progress();  // true if a message was started or completed
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
  std::deque<Message> under_way_;  // a deque because memory being sent must not move
};

}  // namespace trireme::ps
