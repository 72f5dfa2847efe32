#include "trireme/comm/grpc/gate.hpp"

#include <fmt/format.h>

#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

constexpr int kLinesPerWindow = 5;
constexpr std::chrono::seconds kWindow{60};

}  // namespace

bool Gate::admits(const grpc::ServerContextBase& context, const std::string& what) {
  if (carries_secret(context, secret_)) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  report(fmt::format("refused {} from {}: it lacks the job's secret", what, context.peer()));
  return false;
}

void Gate::report(const std::string& line) {
  if (!log_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - window_start_ > kWindow) {
    window_start_ = now;
    lines_ = 0;
  }
  if (lines_ == kLinesPerWindow) {
    ++unreported_;
    return;
  }
  ++lines_;
  log_(unreported_ == 0 ? line : fmt::format("{} ({} more before were not logged)", line, unreported_));
  unreported_ = 0;
}

}  // namespace trireme::comm::rpc
