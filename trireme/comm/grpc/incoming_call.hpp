// A call from another task, the only way in. Without proof of the job's secret it ends before a message is read.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "trireme/comm/grpc/authenticator.hpp"
#include "trireme/comm/grpc/grpc_support.hpp"

namespace trireme::comm::rpc {

class IncomingCall;

// Handles the messages of a call. Made once the caller is known.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual std::optional<grpc::Status> on_message(const grpc::ByteBuffer& message) = 0;  // status: ends the call
  virtual void on_end() = 0;  // the peer has ended the call or is gone
};

// Shared by all calls of a server; used only by the server's thread.
struct CallServer {
  Authenticator& authenticator;
  grpc::AsyncGenericService service = {};
  grpc::ServerCompletionQueue* queue = nullptr;
  std::set<IncomingCall*> calls = {};  // those with a handler
  // Set before the queue is shut down; no more operations may start.
  bool is_closed = false;

  // By method: makes the handler; if null, the status says why.
  std::function<std::unique_ptr<CallHandler>(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                             grpc::Status& status)>
      make_handler = {};
};

class IncomingCall {  // deletes itself when no operation is under way
 public:
  // Waits for the next call, repeatedly until the server shuts down.
  static void await(CallServer& server) { new IncomingCall(server); }

  // For the handler, during its lifetime.
  void write(const std::string& message);
  void finish(const grpc::Status& status);
  void cancel() { context_.TryCancel(); }

 private:
  explicit IncomingCall(CallServer& server);
  ~IncomingCall();

  void on_arrived(bool is_ok);
  void serve();
  void read();
  void on_read(bool is_ok);
  void start_writes();
  void end_operation();

  CallServer& server_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  std::unique_ptr<CallHandler> handler_;
  grpc::ByteBuffer message_;
  std::deque<std::string> unsent_;
  std::optional<grpc::Status> final_status_;
  Completion arrived_{[this](bool is_ok) { on_arrived(is_ok); }};
  Completion read_{[this](bool is_ok) { on_read(is_ok); }};
  Completion sent_;
  int under_way_ = 1;  // operations
  bool is_sending_ = false, is_finished_ = false;
};

}  // namespace trireme::comm::rpc
