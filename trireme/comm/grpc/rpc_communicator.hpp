// A group of tasks over gRPC, with its own inbox. Made by the world and by split().
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/roster.hpp"
#include "trireme/comm/grpc/sender.hpp"

namespace trireme::comm::rpc {

// Shared by the communicators of a process; outlives them.
struct Transport {
  Roster& roster;
  Inboxes& inboxes;
  Sender& sender;
  int self = 0;
  std::string description;
  std::function<void()> break_off = [] {};  // ends this task's other connections
  std::atomic<bool> is_abandoned{false};

  void abandon();
};

class RpcCommunicator : public Communicator {
 public:
  RpcCommunicator(Transport& transport, std::vector<int> tasks, int rank, int context);
  ~RpcCommunicator() override;

  std::string_view protocol() const override { return "grpc"; }
  std::string transport() const override { return transport_.description; }
  Presence presence(int rank) const override { return transport_.roster.presence(task(rank)); }
  std::string describe_absence(int rank) const override { return transport_.roster.describe_absence(task(rank)); }
  void doze(Backoff& backoff) override;
  void abandon() override;
  bool retire() override;
  void declare_lost(int rank, const std::string& reason) override { transport_.sender.lose(task(rank), reason); }
  using Communicator::set_members;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;

 private:
  struct State {
    int peer = -1;                            // a task
    std::shared_ptr<PendingSend> send;        // null: a receive, or a copied message
    std::shared_ptr<PendingReceive> receive;  // null: a send
    bool has_failed = false;                  // when posted
  };
  int task(int rank) const { return tasks_[rank]; }
  void send_to_self(const FrameHeader& header, std::span<const std::byte> data);
  bool test_send(int slot, const State& state) const;
  bool test_receive(int slot, const State& state);
  [[noreturn]] void fail_absent(int slot, int peer) const;

  Transport& transport_;
  const std::vector<int> tasks_;  // by rank
  const int context_;
  std::shared_ptr<Inbox> inbox_;
  std::vector<State> states_;                               // by slot
  std::map<std::pair<int, int>, std::uint64_t> sequences_;  // of the next message, by rank and tag
};

}  // namespace trireme::comm::rpc
