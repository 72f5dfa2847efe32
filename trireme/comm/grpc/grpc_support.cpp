#include "trireme/comm/grpc/grpc_support.hpp"

#include <grpc/support/log.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

// Message overhead besides a part of a tensor.
constexpr std::int64_t kLargestRest = 64 << 10;
constexpr int kLargestAnswer = 16 << 20;  // statistics
// A connection carries one call, and before it the call for its challenge.
constexpr int kCallsPerConnection = 4;
// Room for claim, challenge and proof.
constexpr int kLargestMetadata = 8 << 10;
// A task identifies itself right after connecting; from then on its connection has a call and is never idle.
constexpr int kLongestSilenceMs = 20000;
// Per connection attempt: next to a hundred other tasks on few cores, it takes many seconds.
constexpr int kLongestAttemptMs = 20000;

std::string read_file(const std::string& path, const char* option) {
  if (path.empty()) bad_input("TLS needs --tls-cert, --tls-key and --tls-ca together: {} is missing", option);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) {
    bad_input("{} {}: {}", option, path, file.is_open() ? "is empty" : std::strerror(errno));
  }
  return text;
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
  // For retries gRPC would hold on to the memory of what it sent first.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kLongestAttemptMs);
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
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // so that a port in use is noticed
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ping);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.liveness.answer_within.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, ping / 2);
  // Pings of our own channels are not abuse.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, ping / 4);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxSendMessageSize(-1);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.part_bytes + kLargestRest));
  // Limits what strangers can make gRPC hold: some KB of metadata, few calls, and 64 KiB of flow control per call.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kLargestMetadata);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kLongestSilenceMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kLongestSilenceMs);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

gpr_timespec after(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

std::string printable(const std::string& text) {
  std::string clean = text.substr(0, 500);
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = '?';
  }
  return clean;
}

grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string to_text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

void silence_library() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace trireme::comm::rpc
