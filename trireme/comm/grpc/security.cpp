#include "trireme/comm/grpc/security.hpp"

#include <grpc/support/log.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

// What a message may have beside a part of a tensor; all others are smaller than this.
constexpr std::int64_t kLargestRest = 64 << 10;
constexpr int kLargestAnswer = 16 << 20;  // statistics
// A data connection carries one stream, a control connection a few calls.
constexpr int kStreamsPerConnection = 16;

std::string read_file(const std::string& path, const char* option) {
  if (path.empty()) bad_input("TLS needs --tls-cert, --tls-key and --tls-ca together: {} is missing", option);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) {
    bad_input("{} {}: {}", option, path, file.is_open() ? "has nothing in it" : std::strerror(errno));
  }
  return text;
}

// Looks at all of `expected` whatever the difference is, so that time tells nothing about it.
bool is_equal(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const char other = given.empty() ? '\0' : given[i % given.size()];
    difference |= static_cast<unsigned char>(other) ^ static_cast<unsigned char>(expected[i]);
  }
  return difference == 0;
}

}  // namespace

Tls read_tls(const TlsFiles& files) {
  if (files.certificate.empty() && files.key.empty() && files.authority.empty()) return {};
  return {.certificate = read_file(files.certificate, "--tls-cert"),
          .key = read_file(files.key, "--tls-key"),
          .authority = read_file(files.authority, "--tls-ca")};
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Tls& tls, const Liveness& liveness) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // otherwise channels would share a connection
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // To be able to try a call again gRPC would hold on to the memory of what was sent first.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);  // how long one attempt may take
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 200);
  const auto ping = static_cast<int>(liveness.ping_every.count());
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, ping);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(liveness.answer_within.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, ping / 2);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  if (!tls.is_on()) return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  const grpc::SslCredentialsOptions options{
      .pem_root_certs = tls.authority, .pem_private_key = tls.key, .pem_cert_chain = tls.certificate};
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
}

std::shared_ptr<grpc::ServerCredentials> make_server_credentials(const Tls& tls) {
  if (!tls.is_on()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authority;
  options.pem_key_cert_pairs.push_back({.private_key = tls.key, .cert_chain = tls.certificate});
  return grpc::SslServerCredentials(options);
}

void configure(grpc::ServerBuilder& builder, const RpcOptions& options) {
  const auto ping = static_cast<int>(options.liveness.ping_every.count());
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use is to be noticed
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ping);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.liveness.answer_within.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, ping / 2);
  // The pings of our own channels are no abuse.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, ping / 4);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxSendMessageSize(-1);
  // gRPC reads the request of a unary call as a whole before its secret can be looked at: it must not be large, many at
  // a time, or grow by decompression, which none of ours needs.
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.part_bytes + kLargestRest));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

bool carries_secret(const grpc::ServerContextBase& context, const std::string& secret) {
  const auto found = context.client_metadata().find(kSecretKey);
  if (found == context.client_metadata().end()) return false;
  return is_equal({found->second.data(), found->second.size()}, secret);
}

std::string metadata_of(const grpc::ServerContextBase& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

void silence_library() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace trireme::comm::rpc
