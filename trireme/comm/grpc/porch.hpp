// Where a task listens, and the connections of those who have not proved yet that they know the job's secret: there are
// only so many of them at a time, none stays for long, and none may send much. gRPC, which has no such limits, gets
// each connection from here. Used by Listener.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "trireme/base/unique_fd.hpp"

namespace trireme::comm::rpc {

class Porch {
 public:
  struct Limits {
    std::size_t strangers;          // at a time; when there is one more, the one who came first goes
    std::chrono::seconds patience;  // of each
    std::uint64_t bytes;            // that one may send
  };
  Porch(UniqueFd listener, Limits limits);
  ~Porch() { close(); }
  // Hands on the descriptors of new connections, by a thread of its own, until it is closed.
  void open(std::function<void(int)> hand_on);
  void close();

  // From any thread: a call came over the connection from this address (gRPC's "ipv4:10.0.0.1:41234") with a proof.
  void know(const std::string& peer);

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    UniqueFd connection;  // a second descriptor of it
    std::string host;     // of the other side, and its port
    int port = 0;
    Clock::time_point since;
  };

  void watch();
  void accept_one();
  bool has_strangers();
  void drop_unwelcome();

  UniqueFd listener_;
  const Limits limits_;
  std::function<void(int)> hand_on_;
  const UniqueFd wake_;
  std::atomic<bool> is_closing_ = false;
  std::mutex mutex_;
  std::list<Stranger> strangers_;  // by age
  std::thread thread_;
};

}  // namespace trireme::comm::rpc
