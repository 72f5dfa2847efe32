// Message passing between ranks: the interface that gradient synchronization, collectives and measurements use and that
// every transport (comm/local, comm/mpi, comm/grpc, comm/ucx) implements. Code common to all transports is here:
// checks, the pool of transfers, waiting with a timeout, splitting, shared memory within a node. Collectives are
// functions on top of it (comm/collectives.hpp, comm/all_reducer.hpp). Made by comm/world.hpp in programs and
// comm/local/run_local.hpp in tests.
//
// Threads: one thread at a time per communicator; different communicators (from split(), which also duplicates) may be
// used concurrently.
// Failure: after an Error a communicator is unusable and the job should end; but see presence().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

class Backoff;
class SharedMemory;

enum class Reduction { sum, mean, max };

enum class Presence : std::uint8_t { here, left, lost };  // left: in good order; lost: without notice

struct Member {
  int world_rank = 0;  // rank in the whole job, shown to users
  std::string name;    // shown instead if set: "worker 1", "ps 0"
  std::string host;
  std::int64_t pid = 0;
  int node = 0;  // numbered from 0 by first rank; ranks with equal index can share memory
};

// Handle of a send or receive. May be copied, and dropped once the transfer is complete.
struct Transfer {
  std::int32_t slot = -1;  // -1: nothing to wait for
  std::uint32_t generation = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Callers use tags 0 .. kTags - 1; collectives use tags from kTags on.
  static constexpr int kTags = 512;
  static constexpr int kCollectiveTags = 512;
  static constexpr std::chrono::duration<double> kDefaultTimeout = std::chrono::seconds(60);

  virtual std::string_view protocol() const = 0;  // "local", "mpi", "grpc", "ucx"
  // What actually carries the messages: "shared memory (posix) and tcp".
  virtual std::string transport() const { return std::string(protocol()); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::span<const Member> members() const { return members_; }  // by rank
  const Member& self() const { return members_[rank_]; }

  // Messages between two ranks with the same tag arrive in order. Send and receive must have equal size, of any length.
  // The transfer owns the memory until it completes. Allocates only if more are under way than ever before.
  Transfer start_send(std::span<const std::byte> data, int to, int tag);
  Transfer start_receive(std::span<std::byte> data, int from, int tag);
  // Whether it is complete, from then on always. Never blocks; drives transfers, which may stall if nobody asks.
  bool done(Transfer transfer);
  // Sleeps until completion. After timeout(): Error(failed) naming ranks, hosts, operation, bytes, time and context.
  void wait(Transfer transfer);
  void wait(Transfer transfer, const std::function<void()>& meanwhile);  // calls it between polls
  // Drives transfers. Call it now and then in other long waits: peers may need it for transfers done on this side.
  virtual void progress() {}
  // Whether a rank is still there. Callable from any thread. Transfers with an absent rank fail; if the transport
  // survives the loss of a rank, done() reports this per transfer and those with other ranks continue.
  virtual Presence presence(int) const { return Presence::here; }
  // Describes an absent rank: "lost ps 0 (alpha): connection closed".
  virtual std::string describe_absence(int rank) const;
  // For polling several transfers with done(): sleeps briefly or, if the transport can, until one may have completed.
  virtual void doze(Backoff& backoff);

  void send(std::span<const std::byte> data, int to, int tag) { wait(start_send(data, to, tag)); }
  void receive(std::span<std::byte> data, int from, int tag) { wait(start_receive(data, from, tag)); }

  // The library's all-reduce, in place; collective. Available on all ranks or none; prepared once by all before use.
  virtual bool has_library_all_reduce() const { return false; }
  virtual void prepare_library_all_reduce() {}
  Transfer start_library_all_reduce(std::span<float> values, Reduction reduction);

  // A communicator of the ranks with the same color, by key, then rank; nullptr if the color is negative. Inherits
  // timeout and context. Collective, by one thread per rank. split(0, rank()) duplicates.
  std::unique_ptr<Communicator> split(int color, int key);

  // A communicator of these ranks, in this order. Exactly these ranks call it, with the same list. Afterwards waits in
  // this communicator ignore the other ranks, which may have ended.
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& ranks);

  // A communicator of these ranks, in this order, made without a message: for ranks that learn of a loss from others,
  // such as a launcher. Epochs count from 1; messages of different epochs never mix.
  std::unique_ptr<Communicator> successor(const std::vector<int>& ranks, int epoch);
  static constexpr int kContextsPerEpoch = 4096;
  // Of a successor, or a group of one: ends what is under way in its epoch and leaves other epochs alone. Afterwards
  // nothing touches the transfers' memory; false: a peer that has stopped still holds on to some.
  [[nodiscard]] virtual bool retire();
  // Somebody who knows says that this rank is gone.
  virtual void declare_lost(int /*rank*/, const std::string& /*reason*/) {}

  // Zeroed memory of this size on every rank, visible to all ranks of its node, with page tables filled for the own
  // piece. Collective; bytes must be equal. nullptr on all ranks if the system refuses on any.
  std::unique_ptr<SharedMemory> share(std::int64_t bytes);

  // Limit of a single wait. kUnevenTimeout: for ranks not in lockstep (one evaluates, saves or is measured alone).
  static constexpr std::chrono::hours kUnevenTimeout{24};
  void set_timeout(std::chrono::duration<double> timeout) { timeout_ = timeout; }
  std::chrono::duration<double> timeout() const { return timeout_; }
  // What is being done, for error messages: "bucket 3 of step 17". Cheap enough to call for every bucket.
  void set_context(std::string_view context) { context_.assign(context); }
  std::string_view context() const { return context_; }

  // Callable from any thread: current and later waits soon fail, and the communicator is unusable.
  void interrupt() { interrupted_->store(true, std::memory_order_release); }
  // Interrupting either now interrupts both: for one split off inside an operation on `other`, on the same thread.
  void share_interruption_with(const Communicator& other) { interrupted_ = other.interrupted_; }

  // For callers that exit early with transfers under way: cancels them in all communicators of the job, of a successor
  // in those of its epoch, so that nothing touches their memory after this returns. Nothing can be sent or received
  // there afterwards.
  virtual void abandon() { interrupt(); }

  // For waits in shared memory: Error(failed) if a rank is known to be gone. A system call per rank of the node.
  void check_peers() const;
  // For waits of their own kind: from timeout() on, throws "rank 0 (alpha): all-reduce of 25.6 MB with rank 3 (beta)
  // did not complete ...", unless the judge lets it go on. Peer -1: all others.
  void check_wait(std::string_view operation, int peer, std::int64_t bytes, std::chrono::duration<double> waited) const;
  // Asked by a wait that has reached the timeout: who keeps it waiting, such as "rank 2 (gamma)", or "": it goes on.
  using Judge = std::function<std::string()>;
  void set_judge(Judge judge) { judge_ = std::move(judge); }

  std::string name_of(int rank) const;  // "rank 1 (beta)", by its rank in the job

 protected:
  Communicator(int rank, int size);

  // Implemented by transports. A slot is a small index identifying an active transfer, usable for the transport's own
  // arrays. post_* start a transfer and return; they throw only if the underlying library fails.
  virtual void post_send(int slot, std::span<const std::byte> data, int to, int tag) = 0;
  virtual void post_receive(int slot, std::span<std::byte> data, int from, int tag) = 0;
  virtual void post_library_all_reduce(int slot, std::span<float> values, Reduction reduction);
  virtual bool test(int slot) = 0;  // after true the slot is reused
  // Makes a communicator of these ranks, including this one. The context (>= 1) keeps its messages apart from others'.
  virtual std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) = 0;

  // Error(failed) if the transport knows that the group has failed.
  virtual void check_group() const {}

  // Exchanges identities: the last step of making the first communicator. Ranks with equal node keys share memory.
  void introduce(const std::string& host, const std::string& node_key);

  void set_members(std::vector<Member> members);  // replaces introduce() if the ranks already know each other

  // The transport's state of a slot, in a list that grows as needed.
  template <typename State>
  static State& state_at(std::vector<State>& states, int slot) {
    if (slot >= std::ssize(states)) states.resize(slot + 1);
    return states[slot];
  }

  // For messages: "rank 0 (alpha): send of 4.0 MB with rank 1 (beta) (bucket 3 of step 17)".
  std::string describe(int slot) const;

 private:
  struct Slot {
    const char* operation = "";
    int peer = -1;
    std::int64_t bytes = 0;
    std::uint32_t generation = 0;  // counts the transfers completed in this slot
  };

  std::unique_ptr<Communicator> make_member_group(const std::vector<int>& ranks, int context);
  int take_slot(const char* operation, int peer, std::int64_t bytes);
  void check_peer(const char* operation, int peer, int tag) const;

  int rank_;
  int size_;
  std::vector<Member> members_;
  bool is_of_epoch_ = false;   // a successor, or a group of one: they are interrupted together
  std::set<int> left_behind_;  // ranks whose end is not a failure
  std::vector<Slot> slots_;
  std::vector<int> free_slots_;
  std::chrono::duration<double> timeout_ = kDefaultTimeout;
  std::string context_;
  Judge judge_;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
  // The highest context given to make_group(), shared by all communicators that this rank has from one world.
  std::shared_ptr<int> last_context_;
};

// One tag per kind: ranks that call different collectives time out with a clear error instead of mixing messages.
enum CollectiveTag : int {
  kBarrierTag = Communicator::kTags,
  kBroadcastTag,
  kAllGatherTag,
  kRingTag,
  kHalvingDoublingTag,
  kTreeTag,
  kAddressTag,  // for transports that connect a group over another communicator
};

// Abandons transfers if an exception leaves the scope. Declare it after the local memory that they use.
class AbandonOnError {
 public:
  explicit AbandonOnError(Communicator& communicator) : communicator_(communicator) {}
  AbandonOnError(const AbandonOnError&) = delete;
  AbandonOnError& operator=(const AbandonOnError&) = delete;
  ~AbandonOnError() {
    if (std::uncaught_exceptions() > exceptions_) communicator_.abandon();
  }

 private:
  Communicator& communicator_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace trireme::comm
