// A data stream from another task, from its first word to its end. For the server's sources alone.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <vector>

#include "trireme/comm/grpc/gate.hpp"
#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

// Where parts go, and who has said goodbye on how many streams. Used by the server's thread alone.
class PartSink {
 public:
  PartSink(Roster& roster, Inboxes& inboxes, const RpcOptions& options)
      : roster_(roster), inboxes_(inboxes), goodbyes_(options.tasks.size()) {}

  // What is wrong with a frame; empty: nothing.
  std::string take(int from, const grpc::ByteBuffer& frame, bool& is_goodbye);
  void count_goodbye(int from, int streams) {
    if (++goodbyes_[static_cast<std::size_t>(from)] == streams) roster_.leave(from);
  }
  Roster& roster() { return roster_; }

 private:
  Roster& roster_;
  Inboxes& inboxes_;
  std::vector<int> goodbyes_;
};

// Waits for the next stream, and so on until the server is shut down.
void accept_stream(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue, Gate& gate, PartSink& sink);

}  // namespace trireme::comm::rpc
