// A group of ranks over UCX: tagged messages, and large sends from memory of allocate() between processes that see each
// other's memory, where the receiver fetches the data with one copy instead of two or of the kernel's slow one.
//
// Every communicator has a UCX worker, with connections, of its own: so several threads use several communicators
// without a lock between them, none is held up by another's traffic, each sleeps on events of its own, and groups
// cannot take each other's messages. The price is a set of addresses to exchange when a group is made.
#pragma once

#include <ucp/api/ucp.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"
#include "trireme/comm/ucx/ucx_handles.hpp"

namespace trireme::comm::ucx {

// What the groups of a job share.
struct UcxJob {
  std::shared_ptr<UcxContext> context;
  Communicator& control;
  UcxOptions options;
};

// The texts of these ranks of a communicator, of which this is one, in their order. Collective over them.
std::vector<std::string> exchange_texts(Communicator& over, std::span<const int> ranks, const std::string& mine);

class UcxCommunicator : public Communicator {
 public:
  struct Group {
    int rank = 0;                        // of this process
    std::vector<int> control_ranks;      // by rank
    std::vector<Member> members;         // by rank
    std::vector<std::string> addresses;  // of the workers, by rank
  };
  UcxCommunicator(std::shared_ptr<const UcxJob> job, std::unique_ptr<UcxWorker> worker, Group group);
  ~UcxCommunicator() override;

  std::string_view protocol() const override { return "ucx"; }
  std::string transport() const override;
  Presence presence(int rank) const override;
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  void progress() override;
  void doze(Backoff& backoff) override;
  [[noreturn]] void abort(int code) override;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;

 private:
  // What a sender says instead of sending: where the data lies.
  struct Announcement {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;  // of the sender, which waits for word that the data was fetched
    Region region;
  };
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    std::vector<std::string> transports;
    bool shows_memory = false;                 // it and this process can map each other's memory
    bool reports_failure = false;              // UCX does, for this endpoint
    ucs_status_t failure = UCS_OK;             // what it has reported
    std::map<std::uint32_t, ucp_rkey_h> keys;  // of its regions that were fetched from, by id
  };
  // A send is complete after `send`, or when announced data was fetched; a receive after `receive`, or when it has
  // fetched and said so.
  enum class Stage { send, await_fetch, receive, fetch, confirm, complete };
  struct State {
    Stage stage = Stage::send;
    int peer = 0;
    std::span<std::byte> data;       // of a receive
    std::size_t arrived_bytes = 0;   // for a receive
    void* request = nullptr;         // UCX's, under way; null: this stage is over
    ucs_status_t status = UCS_OK;    // of the stage; an error stays
    void* confirmation = nullptr;    // the receive of word that an announced send was fetched
    Announcement announcement;       // of a send
    ucp_tag_recv_info_t received{};  // by a receive
  };

  void connect(int rank, const std::string& address);
  void disconnect(Peer& peer);
  ucp_ep_h endpoint(int rank) const { return peers_[static_cast<std::size_t>(rank)].endpoint; }
  State& begin(int slot, Stage stage, int peer);
  void begin_request(State& state, Stage stage, ucs_status_ptr_t request);
  void announce(int slot, std::span<const std::byte> data, const Region& region, std::uint64_t tag);
  void advance(State& state);
  bool is_over(State& state);
  void begin_next_stage(State& state);
  void begin_fetch(State& state);
  ucs_status_t find_key(Peer& peer, const Region& region, ucp_rkey_h& key);
  [[noreturn]] void fail_with_status(int slot);
  void check_peer_of(int slot);
  [[noreturn]] void fail_transfer(int slot, std::string_view reason);

  std::shared_ptr<const UcxJob> job_;
  std::size_t least_fetched_;  // announcements must fit into the receiver's memory
  std::unique_ptr<UcxWorker> worker_;
  std::vector<int> control_ranks_;
  std::vector<Peer> peers_;
  std::deque<State> states_;  // by slot; UCX has pointers into them
  // Receives whose data may have to be fetched: whoever waits for something else must do it too, as the sender waits.
  std::vector<int> fetching_;
  bool has_progressed_ = false;  // since the last doze()
};

}  // namespace trireme::comm::ucx
