// A call from another task, from its first word to its end: the one way into a task. Calls that do not prove that they
// know the job's secret end before anything of theirs is read. For the server's sources alone.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/gate.hpp"

namespace trireme::comm::rpc {

class IncomingCall;

// Who hears what comes in a call that goes on. Made by the reception when the caller is known.
class Guest {
 public:
  virtual ~Guest() = default;
  // The call ends with the status, if there is one.
  virtual std::optional<grpc::Status> take(const grpc::ByteBuffer& message) = 0;
  // The other side has ended it, or is gone.
  virtual void end() = 0;
};

// What all calls of a server share; used by the server's thread alone.
struct Reception {
  Gate& gate;
  grpc::AsyncGenericService service = {};
  grpc::ServerCompletionQueue* queue = nullptr;
  std::set<IncomingCall*> calls = {};  // of guests

  // By method: the answer to a call that has nothing to say, with its status,
  std::function<std::optional<std::string>(const std::string& method, grpc::Status& status)> answer = {};
  // and the guest for one that has; if there is none, the status says why.
  std::function<std::unique_ptr<Guest>(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                       grpc::Status& status)>
      receive = {};
};

// Deletes itself when no operation is under way any more.
class IncomingCall {
 public:
  // Waits for the next call, and so on until the server is shut down.
  static void await(Reception& reception) { new IncomingCall(reception); }

  // For the guest, as long as it lives.
  void write(const std::string& message);
  void finish(const grpc::Status& status);
  void cancel() { context_.TryCancel(); }

 private:
  explicit IncomingCall(Reception& reception);
  ~IncomingCall();

  void on_came(bool is_ok);
  void serve();
  void read();
  void on_read(bool is_ok);
  void pump();
  void settle();

  Reception& reception_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  std::unique_ptr<Guest> guest_;
  grpc::ByteBuffer message_;
  std::deque<std::string> unsent_;
  std::optional<grpc::Status> last_word_;
  Event came_{[this](bool is_ok) { on_came(is_ok); }};
  Event read_{[this](bool is_ok) { on_read(is_ok); }};
  Event sent_;
  int under_way_ = 1;  // operations
  bool is_sending_ = false, is_finished_ = false;
};

}  // namespace trireme::comm::rpc
