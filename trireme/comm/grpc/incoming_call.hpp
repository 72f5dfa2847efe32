// A call from another task, from its first message to its end: the one way into a task. Calls that do not prove that
// they know the job's secret end before anything of theirs is read. For the server's sources alone.
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

// Hears what comes in a call that goes on. Made when the caller is known.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // The call ends with the status, if there is one.
  virtual std::optional<grpc::Status> on_message(const grpc::ByteBuffer& message) = 0;
  // The other side has ended it, or is gone.
  virtual void on_end() = 0;
};

// What all calls of a server share; used by the server's thread alone.
struct CallServer {
  Authenticator& authenticator;
  grpc::AsyncGenericService service = {};
  grpc::ServerCompletionQueue* queue = nullptr;
  std::set<IncomingCall*> calls = {};  // that have a handler
  // No more operations begin: the queue takes none when it is shut down.
  bool is_closed = false;

  // By method: the answer to a call that has nothing to say, with its status,
  std::function<std::optional<std::string>(const std::string& method, grpc::Status& status)> answer = {};
  // and the handler of one that has; if there is none, the status says why.
  std::function<std::unique_ptr<CallHandler>(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                             grpc::Status& status)>
      make_handler = {};
};

// Deletes itself when no operation is under way any more.
class IncomingCall {
 public:
  // Waits for the next call, and so on until the server is shut down.
  static void await(CallServer& server) { new IncomingCall(server); }

  // For the handler, as long as it lives.
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
