#include "trireme/comm/grpc/authenticator.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <cstring>

#include "trireme/base/clock.hpp"
#include "trireme/comm/grpc/grpc_support.hpp"
#include "trireme/comm/grpc/proof.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

constexpr int kLinesPerWindow = 5;
constexpr std::chrono::seconds kWindow{60};

// A challenge: its time, random bytes, and a hash of these, the claim and the connection, which authenticates it.
constexpr std::uint64_t kChallengeSeconds = 60;
constexpr std::size_t kTimeBytes = 8, kRandomBytes = 16;

std::uint64_t seconds_now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now().time_since_epoch()).count());
}

// Big-endian, so that challenges sort by age.
std::string to_bytes(std::uint64_t number) {
  const std::uint64_t bytes = htobe64(number);
  return {reinterpret_cast<const char*>(&bytes), sizeof bytes};
}

std::uint64_t to_number(const std::string& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return be64toh(number);
}

std::string metadata_of(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace

Authenticator::Authenticator(const RpcOptions& options)
    : secret_(options.secret),
      self_(options.self),
      address_(options.tasks[options.self].address),
      log_(options.log),
      own_key_(random_bytes(kNonceBytes)) {}

grpc::Status Authenticator::challenge(grpc::ServerContext& context) {
  const std::string claim = metadata_of(context, kClaimKey);
  wire::Claim caller;
  if (!caller.ParseFromString(claim) || caller.nonce().size() != kNonceBytes) {
    return refuse(context, "a call", "it is not from a task of this job");
  }
  // A challenge for another task's call would enable a man in the middle.
  if (caller.to() != self_ || caller.address() != address_) {
    refuse(context, caller.method().substr(0, kLongestMethod), "it is meant for another task");
    return {StatusCode::NOT_FOUND, "this is another task"};
  }
  context.AddTrailingMetadata(kChallengeKey,
                              challenge_of(seconds_now(), random_bytes(kRandomBytes), context.peer(), claim));
  return grpc::Status::OK;
}

grpc::Status Authenticator::admit(grpc::ServerContext& context, const std::string& method, wire::Claim& caller) {
  const std::string claim = metadata_of(context, kClaimKey), challenge = metadata_of(context, kChallengeKey);
  const std::string what = method.substr(0, kLongestMethod);
  if (!caller.ParseFromString(claim) || caller.method() != method || caller.to() != self_) {
    return refuse(context, what, "it carries no proof that it knows the job's secret");
  }
  if (!is_equal(metadata_of(context, kProofKey), caller_proof(secret_, claim, challenge))) {
    return refuse(context, what, "it does not know the job's secret");
  }
  if (!is_fresh(challenge, context.peer(), claim)) {
    refuse(context, what, "its proof is old or from another connection");
    return {StatusCode::ABORTED, "this proof is old or from another connection"};
  }
  if (!use_up(challenge)) return refuse(context, what, "its proof was used before");
  on_proof_(context.peer());
  context.AddInitialMetadata(kProofKey, answer_proof(secret_, claim, challenge));
  return grpc::Status::OK;
}

grpc::Status Authenticator::refuse(const grpc::ServerContext& context, const std::string& what,
                                   const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  report(fmt::format("refused {} from {}: {}", printable(what), context.peer(), why));
  return {StatusCode::UNAUTHENTICATED, "this call does not prove that it knows the job's secret"};
}

std::string Authenticator::challenge_of(std::uint64_t now, const std::string& random, const std::string& peer,
                                        const std::string& claim) const {
  const std::string time = to_bytes(now);
  return time + random + keyed_hash(own_key_, {time, random, peer, claim});
}

bool Authenticator::is_fresh(const std::string& challenge, const std::string& peer, const std::string& claim) const {
  if (challenge.size() != kTimeBytes + kRandomBytes + kProofBytes) return false;
  const std::uint64_t made = to_number(challenge);
  return is_equal(challenge, challenge_of(made, challenge.substr(kTimeBytes, kRandomBytes), peer, claim)) &&
         seconds_now() - made <= kChallengeSeconds;
}

// Only callers that know the secret get here, so strangers cannot make this grow.
bool Authenticator::use_up(const std::string& challenge) {
  const std::uint64_t now = seconds_now();
  if (now > kChallengeSeconds) used_.erase(used_.begin(), used_.lower_bound(to_bytes(now - kChallengeSeconds)));
  return used_.insert(challenge).second;
}

void Authenticator::report(const std::string& line) {
  if (!log_) return;
  const std::lock_guard lock(mutex_);
  const auto now = SteadyClock::now();
  if (now - window_start_ > kWindow) {
    window_start_ = now;
    lines_ = 0;
  }
  if (lines_ == kLinesPerWindow) {
    ++unreported_;
    return;
  }
  ++lines_;
  log_(unreported_ == 0 ? line : fmt::format("{} ({} earlier ones were not logged)", line, unreported_));
  unreported_ = 0;
}

}  // namespace trireme::comm::rpc
