// What comes in a data stream goes into the inboxes. For the server's sources alone.
#pragma once

#include <vector>

#include "trireme/comm/grpc/gate.hpp"
#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/incoming_call.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

// Where parts go, and who has said goodbye on how many streams. Used by the server's thread alone.
class PartSink {
 public:
  PartSink(Roster& roster, Inboxes& inboxes, const RpcOptions& options)
      : roster_(roster), inboxes_(inboxes), goodbyes_(options.tasks.size()) {}

  // What is wrong with a frame; empty: nothing.
  std::string take(int from, const grpc::ByteBuffer& frame, FrameHeader& header);
  void count_goodbye(int from, std::uint64_t streams) {
    if (++goodbyes_[from] == streams) roster_.leave(from);
  }
  Roster& roster() { return roster_; }

 private:
  Roster& roster_;
  Inboxes& inboxes_;
  std::vector<std::uint64_t> goodbyes_;
};

class DataGuest : public Guest {
 public:
  DataGuest(int from, PartSink& sink, Gate& gate) : from_(from), sink_(sink), gate_(gate) {}

  std::optional<grpc::Status> take(const grpc::ByteBuffer& message) override;
  void end() override;

 private:
  const int from_;
  PartSink& sink_;
  Gate& gate_;
  bool has_said_goodbye_ = false;
};

}  // namespace trireme::comm::rpc
