// Authenticates calls: issues challenges, refuses calls without a valid proof, and rate-limits the log of refusals.
// Reads only call metadata, which gRPC limits to some KB, never a stranger's messages. Used only by the server.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "trireme/base/clock.hpp"
#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

class Authenticator {
 public:
  explicit Authenticator(const RpcOptions& options);

  // Sends a challenge in trailing metadata, for one call of this method and connection within a minute. Stateless.
  grpc::Status challenge(grpc::ServerContext& context);
  // Checks the caller's proof. On success, sets `caller` and puts our own proof into the initial metadata.
  grpc::Status admit(grpc::ServerContext& context, const std::string& method, wire::Claim& caller);

  void set_on_proof(std::function<void(const std::string&)> on_proof) { on_proof_ = std::move(on_proof); }

  void report(const std::string& line);
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  grpc::Status refuse(const grpc::ServerContext& context, const std::string& what, const std::string& why);
  std::string challenge_of(std::uint64_t now, const std::string& random, const std::string& peer,
                           const std::string& claim) const;
  bool is_fresh(const std::string& challenge, const std::string& peer, const std::string& claim) const;
  bool use_up(const std::string& challenge);

  const std::string secret_;
  const int self_;
  const std::string address_;
  const std::function<void(const std::string&)> log_;
  std::function<void(const std::string&)> on_proof_ = [](const std::string&) {};
  const std::string own_key_;   // key of our challenges; never leaves this process
  std::set<std::string> used_;  // answered challenges, by age
  std::atomic<std::int64_t> refused_{0};

  std::mutex mutex_;
  SteadyClock::time_point window_start_{};
  int lines_ = 0;                // in this window
  std::int64_t unreported_ = 0;  // including earlier windows
};

}  // namespace trireme::comm::rpc
