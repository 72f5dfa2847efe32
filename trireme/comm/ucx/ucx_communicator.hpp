// A group of ranks exchanging tagged messages over UCX. Every communicator has its own UCX worker and connections:
// threads use different communicators without locks or mutual delays, each sleeps on its own events, and groups cannot
// take each other's messages. The cost is an address exchange per group.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"
#include "trireme/comm/ucx/ucx_handles.hpp"

namespace trireme::comm::ucx {

class UcxCommunicator;

struct UcxJob {  // shared by the groups of a job
  UcxJob(Communicator& given, bool is_one_node) : control(given), context(is_one_node) {}

  Communicator& control;
  UcxContext context;
  std::mutex mutex;                       // guards the list
  std::vector<UcxCommunicator*> members;  // all groups in this process
};

class UcxCommunicator : public Communicator {
 public:
  struct Group {
    int rank = 0;                        // of this process
    std::vector<int> control_ranks;      // by rank
    std::vector<Member> members;         // by rank
    std::vector<std::string> addresses;  // of the workers, by rank
  };
  UcxCommunicator(std::shared_ptr<UcxJob> job, std::unique_ptr<UcxWorker> worker, Group group);
  ~UcxCommunicator() override;

  std::string_view protocol() const override { return "ucx"; }
  std::string transport() const override;
  Presence presence(int rank) const override;
  void progress() override;
  void doze(Backoff& backoff) override;
  void abandon() override;
  std::string describe_absence(int rank) const override;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;

 private:
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    std::vector<std::string> transports;
    bool reports_failure = false;   // UCX does, for this endpoint
    ucs_status_t failure = UCS_OK;  // as reported
  };
  struct State {
    int peer = 0;
    bool is_receive = false;
    std::size_t bytes = 0;
    void* request = nullptr;       // UCX's, while the transfer is under way
    ucs_status_t status = UCS_OK;  // afterwards
    std::uint64_t look = 0;        // when it was last tested
  };

  void connect(int rank, const std::string& address);
  void help_others();
  // Callers of the following hold the mutex.
  void move_along();
  void disconnect(std::span<const int> ranks, bool by_force);
  void* start_close(int rank, bool by_force);
  void cancel(std::span<State> states);
  void give_up();
  void begin(int slot, State state, ucs_status_ptr_t request);
  ucs_status_t look_at(State& state, ucp_tag_recv_info_t& received);
  bool is_lost(int rank) const;
  std::string why_lost(int rank) const;
  [[noreturn]] void fail_transfer(int slot, std::string_view reason);

  std::shared_ptr<UcxJob> job_;
  mutable std::mutex mutex_;  // guards all below: another group's thread may call abandon()
  std::unique_ptr<UcxWorker> worker_;
  std::vector<int> control_ranks_;
  std::vector<Peer> peers_;
  std::vector<State> states_;    // by slot
  bool has_progressed_ = false;  // since the last doze()
  bool was_woken_ = false;       // from it, by an event; only for the waiting thread
  bool has_more_ = false;        // perhaps, when move_along() returned
  std::uint64_t looks_ = 0;      // how often test() has made progress
  std::string why_useless_;      // empty: usable
};

}  // namespace trireme::comm::ucx
