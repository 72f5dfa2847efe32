// Credentials and settings of gRPC's servers and channels, and the names of calls and of what they carry. For the
// sources of this folder alone: gRPC's own names appear in no header outside it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// Metadata of calls: what the caller says, what the called task has answered, and the proofs of both (proof.hpp).
inline constexpr const char* kClaimKey = "trireme-claim-bin";
inline constexpr const char* kChallengeKey = "trireme-challenge-bin";
inline constexpr const char* kProofKey = "trireme-proof-bin";

inline constexpr const char* kChallengeMethod = "/trireme/challenge";  // before each of the others
inline constexpr const char* kMeetingMethod = "/trireme/meeting";
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
