// Listens for a task and limits the number, lifetime and traffic of connections that have not yet proved knowledge of
// the job's secret. gRPC has no such limits, so it gets each connection from here. Used by Listener.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

class Acceptor {
 public:
  // Listens on the address of tasks[self]. Error(bad_input) with the reason if that fails ("worker 1: 127.0.0.1:2221 is
  // in use; ..."), or if only this host could reach the address but other tasks are elsewhere.
  explicit Acceptor(const RpcOptions& options);
  ~Acceptor() { close(); }
  // "10.0.0.1:2230" for "alpha:2230": a single address, though a name may have several.
  const std::string& address() const { return address_; }
  void open(std::function<void(int)> hand_on);
  void close();

  // Callable from any thread: a call with a proof came from this address (gRPC's "ipv4:10.0.0.1:41234").
  void set_proven(const std::string& peer);

 private:
  struct Unproven {
    UniqueFd connection;  // a duplicate descriptor
    std::string host;     // of the peer, with its port
    int port = 0;
    SteadyClock::time_point since;
  };

  void watch();
  void accept_one();
  bool has_unproven();
  void enforce_limits();

  const std::string address_;
  UniqueFd listener_;
  const std::size_t most_unproven_;
  std::function<void(int)> hand_on_;
  const UniqueFd wake_;
  std::atomic<bool> is_closing_ = false;
  std::mutex mutex_;
  std::list<Unproven> unproven_;  // by age
  std::thread thread_;
};

}  // namespace trireme::comm::rpc
