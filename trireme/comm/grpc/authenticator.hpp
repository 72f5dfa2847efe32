// Who may call: gives out challenges and refuses what does not carry the proof that answers one, and logs that without
// letting a flood of calls fill a disk. It looks at nothing but a call's metadata, which gRPC limits to some KB: no
// message of a stranger is ever read. For the server's sources alone.
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

  // Answers a call for a challenge, in the trailing metadata. The challenge is good for one call of this method, on the
  // same connection, within a minute; nothing is kept here for those who ask for many.
  grpc::Status challenge(grpc::ServerContext& context);
  // Whether a call carries the caller's proof. If so, who it is, and our own proof lies in the initial metadata.
  grpc::Status admit(grpc::ServerContext& context, const std::string& method, wire::Claim& caller);

  // Called with the address of whoever has proved it.
  void set_on_proof(std::function<void(const std::string&)> on_proof) { on_proof_ = std::move(on_proof); }

  // For the other things that are wrong with calls, under the same limit.
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
  const std::string own_key_;   // of our challenges: nobody else needs to know it
  std::set<std::string> used_;  // challenges that were answered; by age
  std::atomic<std::int64_t> refused_{0};

  std::mutex mutex_;
  SteadyClock::time_point window_start_{};
  int lines_ = 0;                // in this window
  std::int64_t unreported_ = 0;  // of earlier windows as well
};

}  // namespace trireme::comm::rpc
