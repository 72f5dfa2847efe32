// A control for tests whose processes come from fork(): messages over sockets that were made before. Unlike with MPI,
// no launcher ends the others when one is killed. Small messages only: a send writes them at once.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::testkit {

class SocketControl : public Communicator {
 public:
  // A socket to every rank; that to itself is not used. presences[rank] is in memory that a watcher writes to.
  SocketControl(int rank, std::vector<int> sockets, const std::atomic<Presence>* presences);

  std::string_view protocol() const override { return "sockets"; }
  Presence presence(int rank) const override { return presences_[rank].load(); }
  using Communicator::introduce;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;

 private:
  struct Message {
    int from = 0;
    int tag = 0;
    std::vector<std::byte> data;
  };
  struct State {
    int from = -1;  // -1: a send, which is complete
    int tag = 0;
    std::span<std::byte> data;
  };
  void take_arrived();

  std::vector<int> sockets_;
  const std::atomic<Presence>* presences_;
  std::vector<Message> arrived_;
  std::vector<State> states_;
};

}  // namespace trireme::comm::testkit
