// Shared by servers and clients in this folder: method and metadata names, credentials, settings, and completions of
// asynchronous operations. No header outside this folder uses gRPC names.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// Call metadata: the caller's claim, the callee's challenge, and both proofs (proof.hpp).
inline constexpr const char* kClaimKey = "trireme-claim-bin";
inline constexpr const char* kChallengeKey = "trireme-challenge-bin";
inline constexpr const char* kProofKey = "trireme-proof-bin";

inline constexpr const char* kChallengeMethod = "/trireme/challenge";  // before each of the others
inline constexpr const char* kMembershipMethod = "/trireme/membership";
inline constexpr const char* kDataMethod = "/trireme/data";
inline constexpr std::size_t kLongestMethod = 40;

// File contents; all empty without TLS. Error(bad_input) names the option of an unreadable file.
struct Tls {
  std::string certificate, key, authority;
  bool is_on() const { return !certificate.empty(); }
};
Tls read_tls(const TlsFiles& files);

// A separate connection to a task that reconnects quickly and detects silence.
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Tls& tls, const Liveness& liveness);
std::shared_ptr<grpc::ServerCredentials> make_server_credentials(const Tls& tls);
void configure(grpc::ServerBuilder& builder, const RpcOptions& options);

// Tag of an operation under way; the thread that runs the completion queue calls its function when the operation ends.
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

inline void run_queue(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool is_ok = false;
  while (queue.Next(&tag, &is_ok)) static_cast<Completion*>(tag)->complete(is_ok);
}

gpr_timespec after(std::chrono::milliseconds time);  // a deadline on the monotonic clock

std::string printable(const std::string& text);  // without control characters

grpc::ByteBuffer to_buffer(const std::string& bytes);
std::string to_text(const grpc::ByteBuffer& buffer);

// Silences gRPC, which logs client errors to stderr without limit, unless its environment variable asks for the log.
void silence_library();

}  // namespace trireme::comm::rpc
