// Who may call: refuses what does not carry the job's secret, and logs that without letting a flood of calls fill a
// disk. For the server's sources alone.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

class Gate {
 public:
  explicit Gate(const RpcOptions& options) : secret_(options.secret), log_(options.log) {}

  bool admits(const grpc::ServerContextBase& context, const std::string& what);
  // For the other things that are wrong with calls, under the same limit.
  void report(const std::string& line);
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // The server's thread begins no more operations: its queue takes none when it is shut down.
  void close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }

  static grpc::Status refusal() { return {grpc::StatusCode::UNAUTHENTICATED, "this call lacks the job's secret"}; }

 private:
  const std::string secret_;
  const std::function<void(const std::string&)> log_;
  std::atomic<std::int64_t> refused_{0};
  bool is_closed_ = false;

  std::mutex mutex_;
  std::chrono::steady_clock::time_point window_start_{};
  int lines_ = 0;                // in this window
  std::int64_t unreported_ = 0;  // of earlier windows as well
};

}  // namespace trireme::comm::rpc
