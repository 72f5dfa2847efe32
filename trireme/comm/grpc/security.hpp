// Credentials and settings of gRPC's servers and channels, and the secret that every call carries. For the sources of
// this folder alone: the only headers that show gRPC's names are this one and events.hpp.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

inline constexpr const char* kSecretKey = "trireme-secret-bin";
inline constexpr const char* kTaskKey = "trireme-task";
inline constexpr const char* kInstanceKey = "trireme-instance";
inline constexpr const char* kStreamsKey = "trireme-streams";
inline constexpr const char* kDataMethod = "/trireme.comm.rpc.wire.Data/Parts";

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

bool carries_secret(const grpc::ServerContextBase& context, const std::string& secret);
// What a client has put into the metadata; empty where it has not.
std::string metadata_of(const grpc::ServerContextBase& context, const char* key);

// gRPC reports what clients do wrong on the error output, without limit: unless somebody has asked for that by its
// environment variable, it keeps quiet.
void silence_library();

}  // namespace trireme::comm::rpc
