// What one rank receives from another: headers one after the other, each with the elements that follow it, into memory
// that the receiver names when it has seen the header. The counterpart of Outbox.
#pragma once

#include <span>

#include "trireme/ps/protocol.hpp"

namespace trireme::ps {

class Inbox {
 public:
  Inbox(comm::Communicator& communicator, int from) : communicator_(&communicator), from_(from) {}

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

}  // namespace trireme::ps
