// What servers and clients of this folder share: names of calls and of what they carry, credentials, settings, and the
// completions of asynchronous operations. gRPC's own names appear in no header outside this folder.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// Metadata of calls: what the caller says, what the called task has answered, and the proofs of both (proof.hpp).
inline constexpr const char* kClaimKey = "trireme-claim-bin";
inline constexpr const char* kChallengeKey = "trireme-challenge-bin";
inline constexpr const char* kProofKey = "trireme-proof-bin";

inline constexpr const char* kChallengeMethod = "/trireme/challenge";  // before each of the others
inline constexpr const char* kMembershipMethod = "/trireme/membership";
inline constexpr const char* kDataMethod = "/trireme/data";
inline constexpr const char* kHealthMethod = "/trireme/health";
inline constexpr const char* kStatisticsMethod = "/trireme/statistics";
inline constexpr const char* kShutdownMethod = "/trireme/shutdown";
inline constexpr std::size_t kLongestMethod = 40;

// The contents of the files, or nothing at all. Error(bad_input) that names the option of a file that cannot be read.
struct Tls {
  std::string certificate, key, authority;
  bool is_on() const { return !certificate.empty(); }
};
Tls read_tls(const TlsFiles& files);

// A connection of its own to a task, that is tried again quickly and notices silence.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Tls& tls, const Liveness& liveness);
std::shared_ptr<grpc::ServerCredentials> make_server_credentials(const Tls& tls);
void configure(grpc::ServerBuilder& builder, const RpcOptions& options);

// What a completion queue gives back: each operation under way has one, whose function is called, by the thread that
// runs the queue, when the operation ends.
class Completion {
 public:
  explicit Completion(std::function<void(bool)> then) : then_(std::move(then)) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void* tag() { return this; }
  void complete(bool is_ok) { then_(is_ok); }

 private:
  std::function<void(bool)> then_;
};

// Until the queue is shut down and empty.
inline void run_queue(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool is_ok = false;
  while (queue.Next(&tag, &is_ok)) static_cast<Completion*>(tag)->complete(is_ok);
}

// So long from now, by a clock that nobody sets.
gpr_timespec after(std::chrono::milliseconds time);

// What a stranger may have sent, without what a terminal would take for commands.
std::string printable(const std::string& text);

grpc::ByteBuffer to_buffer(const std::string& bytes);
std::string to_text(const grpc::ByteBuffer& buffer);

// gRPC reports what clients do wrong on the error output, without limit: unless somebody has asked for that by its
// environment variable, it keeps quiet.
void silence_library();

}  // namespace trireme::comm::rpc
