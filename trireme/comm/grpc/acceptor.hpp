// Where a task listens, and the connections of those who have not proved yet that they know the job's secret: there are
// only so many of them at a time, none stays for long, and none may send much. gRPC, which has no such limits, gets
// each connection from here. Used by Listener.
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
  // Listens on the address of tasks[self]. Error(bad_input) with the reason if that cannot be ("worker 1:
  // 127.0.0.1:2221 is in use; ..."), or if only this host could reach it and other tasks are elsewhere.
  explicit Acceptor(const RpcOptions& options);
  ~Acceptor() { close(); }
  // "10.0.0.1:2230" of "alpha:2230": one address, though a name may stand for several.
  const std::string& address() const { return address_; }
  // Hands on the descriptors of new connections, by a thread of its own, until it is closed.
  void open(std::function<void(int)> hand_on);
  void close();

  // From any thread: a call came over the connection from this address (gRPC's "ipv4:10.0.0.1:41234") with a proof.
  void set_proven(const std::string& peer);

 private:
  struct Unproven {
    UniqueFd connection;  // a second descriptor of it
    std::string host;     // of the other side, and its port
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
