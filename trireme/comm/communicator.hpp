// How ranks talk: the interface that gradient synchronisation, collectives and measurements are written against, and
// that every transport (comm/local, comm/mpi, comm/grpc, comm/ucx) implements. What is the same for all of them is done
// here once: checks, the pool of transfers, waiting with a timeout, splitting, memory shared inside a node. Collectives
// are functions over it (comm/collectives.hpp, comm/all_reducer.hpp). Made by comm/world.hpp in programs and by
// comm/local/run_local.hpp in tests.
//
// Threads: one communicator is used by one thread at a time; different communicators (made by split(), which also
// duplicates) by different threads at the same time.
// Failure: after an Error a communicator is of no more use, and the job should end; but see presence().
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

// Left in good order, or gone without a word.
enum class Presence : std::uint8_t { here, left, lost };

// One rank as the others know it.
struct Member {
  int world_rank = 0;  // its rank in the whole job, which is what people know it by,
  std::string name;    // unless it has a name: "worker 1", "ps 0"
  std::string host;
  std::int64_t pid = 0;
  int node = 0;  // counted from 0 in order of first rank; ranks with equal index can share memory
};

// A send or receive under way. A value of two numbers: may be copied, and dropped once it is done.
struct Transfer {
  std::int32_t slot = -1;  // -1: nothing to wait for
  std::uint32_t generation = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Tags of callers are 0 .. kTags - 1; collectives have tags of their own, from kTags on.
  static constexpr int kTags = 512;
  static constexpr int kCollectiveTags = 512;
  static constexpr std::chrono::duration<double> kDefaultTimeout = std::chrono::seconds(60);

  virtual std::string_view protocol() const = 0;  // "local", "mpi", "grpc", "ucx"
  // What really carries the messages, in words: "shared memory (posix) and tcp".
  virtual std::string transport() const { return std::string(protocol()); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::span<const Member> members() const { return members_; }  // by rank
  const Member& self() const { return members_[rank_]; }

  // Messages between two ranks with the same tag arrive in the order in which they were sent. The receive has exactly
  // the size of the send, and any size will do. The memory belongs to the transfer until it is done. Nothing is
  // allocated once as many transfers as at any one time before have been under way.
  Transfer start_send(std::span<const std::byte> data, int to, int tag);
  Transfer start_receive(std::span<std::byte> data, int from, int tag);
  // Whether it is complete; never waits, and moves transfers along: what nobody asks about may not progress. True again
  // for a transfer that was found complete before.
  bool done(Transfer transfer);
  // Returns when it is complete. Sleeps while there is nothing to do, so that it costs no core. After timeout():
  // Error(failed) that names both ranks and hosts, the operation, bytes, time and the context.
  void wait(Transfer transfer);
  // The same, with something to do between two looks: starting what had to wait until now.
  void wait(Transfer transfer, const std::function<void()>& meanwhile);
  // Lets the transport move transfers along. A rank that waits for something else for long should call it now and then:
  // others may need its help to complete what it has long forgotten.
  virtual void progress() {}
  // Whether a rank is still there. From any thread. A transfer with one that is not fails; by done(), which asks about
  // that transfer alone, those with others go on, on a transport that survives the loss of a rank.
  virtual Presence presence(int) const { return Presence::here; }
  // Of a rank that is not: "lost ps 0 (alpha): connection closed".
  virtual std::string describe_absence(int rank) const;
  // Between two looks at transfers with done(), by those who wait for one of many: sleeps for a moment, or until one
  // may have completed if the transport can tell.
  virtual void doze(Backoff& backoff);

  void send(std::span<const std::byte> data, int to, int tag) { wait(start_send(data, to, tag)); }
  void receive(std::span<std::byte> data, int from, int tag) { wait(start_receive(data, from, tag)); }

  // All-reduce by the library below, in place; collective. Whether this transport has one is the same on all ranks.
  // It is prepared once, by all ranks, before the first.
  virtual bool has_library_all_reduce() const { return false; }
  virtual void prepare_library_all_reduce() {}
  Transfer start_library_all_reduce(std::span<float> values, Reduction reduction);

  // A communicator of the ranks that give the same color, ordered by key, then by rank; nullptr if the color is
  // negative. Collective; not by two threads of a rank at the same time. Timeout and context are taken over.
  // split(0, rank()) is a duplicate.
  std::unique_ptr<Communicator> split(int color, int key);

  // A communicator of some ranks, in this order. Those ranks, and no others, call it with the same list. From then on
  // nobody waits in this one for the other ranks: they may have ended.
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& ranks);

  // Memory of so many bytes on every rank, zeroed, its own with page tables filled, seen by all ranks of the same node.
  // Collective over all ranks; bytes must be equal. nullptr, on all ranks alike, if the system refuses on any.
  std::unique_ptr<SharedMemory> share(std::int64_t bytes);

  // For each single wait: how long without completion is an error. Ranks that do not work in lock step (one evaluates,
  // writes a checkpoint or is measured alone) wait for each other much longer.
  static constexpr std::chrono::hours kUnevenTimeout{24};
  void set_timeout(std::chrono::duration<double> timeout) { timeout_ = timeout; }
  std::chrono::duration<double> timeout() const { return timeout_; }
  // What is being done, for error messages: "bucket 3 of step 17". Cheap enough to call for every bucket.
  void set_context(std::string_view context) { context_.assign(context); }
  std::string_view context() const { return context_; }

  // From any thread: a wait that is going on, and every later one, fails within a moment. For ending the thread that
  // waits; the communicator is of no more use.
  void interrupt() { interrupted_->store(true, std::memory_order_release); }
  // From now on interrupting one of the two interrupts both: for a communicator that is split off for the inside of an
  // operation on `other`, and so is waited on by the same thread.
  void share_interruption_with(const Communicator& other) { interrupted_ = other.interrupted_; }

  // For those who end early with transfers under way: gives all of them up, here and in all other communicators of the
  // same job, so that nobody touches their memory after this returns. Nothing can be sent or received any more.
  virtual void abandon() { interrupt(); }
  // Ends all ranks of the job, from any of them, without their help.
  [[noreturn]] virtual void abort(int code) = 0;

  // For those who wait in shared memory instead of for a transfer.
  // Error(failed) when a rank of the group is known to be gone. Costs a system call per rank of the node.
  void check_peers() const;
  // Throws the error of an expired wait: "rank 0 (alpha): all-reduce of 25.6 MB with rank 3 (beta) did not complete
  // ...". A peer of -1 stands for all other ranks.
  [[noreturn]] void fail_waiting(std::string_view operation, int peer, std::int64_t bytes,
                                 std::chrono::duration<double> waited) const;

 protected:
  Communicator(int rank, int size);

  // What a transport implements. A slot is a small number: the index of a transfer that is under way, for the
  // transport's own arrays. post_* begin a transfer and return; they throw only when the library below fails.
  virtual void post_send(int slot, std::span<const std::byte> data, int to, int tag) = 0;
  virtual void post_receive(int slot, std::span<std::byte> data, int from, int tag) = 0;
  virtual void post_library_all_reduce(int slot, std::span<float> values, Reduction reduction);
  // Whether the slot's transfer is complete; after true the slot will be used again.
  virtual bool test(int slot) = 0;
  // The communicator of these ranks of this one, of which this rank is one. The context is a number from 1 on that no
  // other communicator of these ranks has: it keeps their messages apart.
  virtual std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) = 0;

  // Error(failed) if the transport itself knows that the group has failed.
  virtual void check_group() const {}

  // Tells all ranks who this one is and learns who they are; the last step of making the first communicator. Ranks with
  // equal node keys share memory.
  void introduce(const std::string& host, const std::string& node_key);

  // Instead, if the ranks know each other already.
  void set_members(std::vector<Member> members);

  // What the transport keeps for each slot, in a list that grows as slots are used.
  template <typename State>
  static State& state_at(std::vector<State>& states, int slot) {
    if (slot >= std::ssize(states)) states.resize(slot + 1);
    return states[slot];
  }

  // For the transport's messages: "rank 0 (alpha): send of 4.0 MB with rank 1 (beta) (bucket 3 of step 17)".
  std::string describe(int slot) const;
  std::string name_of(int rank) const;  // "rank 1 (beta)", by its rank in the job

 private:
  struct Slot {
    const char* operation = "";
    int peer = -1;
    std::int64_t bytes = 0;
    std::uint32_t generation = 0;  // counts the transfers that have been done in this slot
  };

  std::unique_ptr<Communicator> make_member_group(const std::vector<int>& ranks, int context);
  int take_slot(const char* operation, int peer, std::int64_t bytes);
  void check_peer(const char* operation, int peer, int tag) const;

  int rank_;
  int size_;
  std::vector<Member> members_;
  std::set<int> left_behind_;  // whose end is not a reason to fail
  std::vector<Slot> slots_;
  std::vector<int> free_slots_;
  std::chrono::duration<double> timeout_ = kDefaultTimeout;
  std::string context_;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
  // The highest number that was given to make_group(), known to all communicators that this rank has from one world.
  std::shared_ptr<int> last_context_;
};

// Tags of the collectives' messages: one per kind, so that ranks that call different collectives do not take each
// other's messages but run into the timeout that names them.
enum CollectiveTag : int {
  kBarrierTag = Communicator::kTags,
  kBroadcastTag,
  kAllGatherTag,
  kRingTag,
  kHalvingDoublingTag,
  kTreeTag,
  kAddressTag,  // of transports that connect a group over another communicator
};

// For transfers from and to memory that lasts as long as a function: when that is left by an error, they are given up
// before the memory goes. To be declared after the memory.
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
