// A program with memory: the arena, the constants, bound kernels. Made by Session::prepare; the loop of a benchmark or
// a trainer writes inputs, calls run(), reads outputs; nothing in it allocates or looks up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/plan/program.hpp"
#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

class InterOpPool;

// The place of an executable among those that run copies of one program on shares of a batch; see batch_split.hpp.
struct GroupPlace {
  int group = 0;
  int groups = 1;
  bool own_statistics = false;  // batch statistics of each group's samples instead of all
  Meeting* meeting = nullptr;
};

// The place of a program among its replicas in other processes, where batch statistics are taken over all of them.
struct ReplicaPlace {
  ReplicaStatistics* statistics = nullptr;  // none: each replica has its own
  int replica = 0;
  int replicas = 1;
};

// Over how many of them statistics are taken.
int statistics_groups(const GroupPlace& place, const ReplicaPlace& replica);
// What the kernels of one of them tell the others.
std::int64_t shared_bytes(const Program& program);

bool applies_gradients(const Instruction& instruction);

class Executable {
 public:
  Executable(const Executable&) = delete;
  // A pool, where one is given, runs independent instructions at the same time. `shared` has shared_bytes(program) for
  // each of statistics_groups(), one after the other.
  Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, GroupPlace place,
             ReplicaPlace replica, void* shared);

  const Program& program() const { return program_; }

  // Plain row-major memory of a placeholder; write it before run(). Throws if the fetches do not need the placeholder.
  // Where the device is not the host, it is copied there by the next run(); who keeps the span and writes to it again
  // says so with input_changed().
  std::span<float> input_f32(Tensor placeholder);
  std::span<std::int32_t> input_i32(Tensor placeholder);
  void input_changed(Tensor placeholder);
  // What has changed so far is complete: a device begins to fetch it, beside the run that it is at, for the next one.
  void send_inputs();
  void feed(Tensor placeholder, const HostTensor& value);  // checks the type
  bool needs(Tensor placeholder) const;
  std::vector<NodeId> placeholders() const;

  void run();
  // The two halves of run(), for groups: what all do at the same time, and what one does after all have ended.
  void run_share();
  void count_run();
  // Where the device is not the host, run() returns before it is done; this waits, and tells how long the device took.
  double wait();
  // Plain memory of a fetch, valid until the next run(); by position in the fetches. Waits for the device.
  std::span<const float> output(int fetch) const;
  HostTensor fetched(int fetch) const;

  // Seconds of each instruction are added up from now on, in instructions' order.
  void enable_profile();
  struct Profile {
    std::vector<double> seconds;
    std::int64_t runs = 0;
  };
  const Profile& profile() const { return profile_; }

  // Runs leave spans from now on, while the recorder is on: every instruction on the host, and waiting. Where the
  // device is not the host, its run as a whole.
  void set_recorder(perf::Recorder& recorder);

  // Gradients go through the exchange before they are applied, from now on; nullptr: they are applied at once. For a
  // program that trains, in one group and without a pool.
  void set_exchange(GradientExchange* exchange);
  // For an exchange that goes before this does: what a device has recorded of it is dropped. No run follows.
  void forget_exchange() noexcept;
  // What the last run with an exchange spent on updates and on waiting for gradients, in seconds.
  struct ExchangeTimes {
    double update = 0;
    double wait = 0;
  };
  const ExchangeTimes& exchange_times() const { return exchange_times_; }
  // One per update, in the order of their instructions: what an exchange works on. On the host's side of a device they
  // are copies, which set_exchange() lets runs bring and fetch; the learning rate is on the host in any case.
  std::vector<GradientBucket> gradient_buckets(MemorySide side = MemorySide::host) const;

  std::int64_t sample_offset = 0;  // see RunContext

 private:
  void bind();
  void plan_meetings();
  void plan_exchange();
  int first_use(const std::vector<NodeId>& variables) const;
  void run_with_exchange();
  void run_with_served_variables();
  void run_and_collect();
  // Where the device is not the host: executable_device.cpp.
  struct Piece;
  void plan_staging();
  void plan_lanes();
  void plan_pieces();
  void run_on_device();
  void take_inputs();
  void run_piece(Piece& piece);
  void give_items(const std::vector<int>& items);
  void give(std::size_t index);
  void set_lane(int lane) const;
  void join_lane(int lane) const;
  void add_marked_times();
  void* host_address(int buffer) const;
  // And where gradients are exchanged there: executable_device_exchange.cpp.
  void plan_device_exchange();
  void give_exchanged(std::size_t bucket, int complete);
  void run_with_staged_exchange();
  void bring_values(const std::vector<std::size_t>& buckets);
  void download_gradients(std::size_t bucket);
  void hand_over_gradients();
  void apply_gradients(std::size_t bucket);
  bool exchanges_on_device() const { return exchange_ != nullptr && exchange_->works_on_device(); }
  bool is_served() const { return exchange_ != nullptr && exchange_->updates_variables(); }

  void await_values(const std::vector<std::size_t>& buckets);
  void wait_for_bucket(std::size_t bucket);
  void finish_bucket(std::size_t bucket);
  void end_step_of_exchange();
  void execute(std::size_t index, int thread = 0);
  void run_kernel(std::size_t index);
  void run_once_instructions();
  int buffer_of(Tensor placeholder) const;
  void* address(int buffer) const;

  Program program_;
  VariableStore& store_;
  ComputeDevice& device_;
  std::uint64_t seed_;
  GroupPlace place_;
  ReplicaPlace replica_;
  void* shared_;
  DeviceMemory arena_, constants_;
  // Where the device is not the host: what it is fed and what is fetched, on the host's side; how its work is spread
  // over lanes; and a run in pieces, as the device has recorded them. There is one piece where nothing has to be done
  // between instructions.
  DeviceMemory staging_;
  std::map<int, std::int64_t> staged_;  // buffer -> offset
  std::set<int> changed_inputs_;        // buffers that are uploaded by the next run
  // Inputs on their way while the device is at a run, which still reads those before.
  struct SentInputs {
    DeviceMemory memory;                 // on the device
    std::map<int, std::int64_t> places;  // buffer -> offset
    std::set<int> buffers;               // that the next run takes from there
    // Signals; -1: none yet.
    int arrived = -1;
    int taken = -1;
  };
  SentInputs sent_;
  int read_inputs_ = -1;                     // signal: the host's side may be written again
  std::vector<int> lane_of_;                 // [instruction]
  std::vector<std::vector<int>> waits_for_;  // [instruction]: those in other lanes that have to be done
  std::vector<bool> signals_;                // [instruction]: somebody in another lane waits for it
  struct Piece {
    std::vector<int> items;
    std::vector<std::size_t> awaits;  // buckets whose values it uses first
    bool needs_updates = false;
    std::optional<std::size_t> bucket;  // whose gradients are complete after it
    std::unique_ptr<Recording> recording;
  };
  std::vector<Piece> pieces_;
  bool warmed_up_ = false;
  std::vector<std::size_t> marked_;  // instructions of this run that are timed
  // [bucket]: gradients in both memories, where the host's side is exchanged.
  struct Copy {
    float* on_device;
    float* on_host;
    std::int64_t bytes;
  };
  std::vector<std::vector<Copy>> gradient_copies_;
  std::vector<std::vector<NodeId>> bucket_variables_;
  // Of this run's buckets.
  struct StagedRun {
    std::vector<int> downloaded;  // signals
    std::size_t complete = 0, updated = 0;
  };
  StagedRun staged_run_;
  std::uint64_t values_seen_ = 0;     // store version after the last run
  std::uint64_t variables_seen_ = 0;  // store version at the last run of the instructions that run once
  RunContext context_;
  bool profiling_ = false;
  Profile profile_;
  // Where spans go, and their labels; see executable_trace.cpp.
  struct Trace {
    std::vector<perf::Track*> tracks;  // [thread of the pool], one without; null: nobody traces
    perf::Track* device = nullptr;     // null also where the device is the host
    std::vector<std::int32_t> instructions;
    std::int32_t wait = 0, end_exchange = 0, meet = 0, piece = 0, wait_for_device = 0, device_run = 0;
  };
  Trace trace_;
  perf::Track* main_track() const { return trace_.tracks.front(); }
  void add_device_span(double seconds) const;
  std::vector<int> items_;   // instructions of every run
  std::vector<bool> meets_;  // instruction: the groups meet before it
  std::vector<bool> skips_;  // instruction: another group does it for all
  InterOpPool* pool_;
  std::vector<std::vector<int>> successors_;  // with a pool: instructions that wait for each one
  std::vector<int> predecessors_;             // and how many each one waits for
  std::function<void(int, int)> execute_item_;
  GradientExchange* exchange_ = nullptr;
  bool collected_ = false;                   // the last run has made no updates
  std::vector<std::size_t> bucket_updates_;  // instruction that applies each bucket
  std::vector<bool> needs_updates_;          // instruction: uses what an earlier one updates, or its gradient
  // Where the exchange writes variables: the buckets of those that each instruction uses, and that are fetched; and
  // whether new values of a bucket may be on their way.
  std::vector<std::vector<std::size_t>> used_buckets_;
  std::vector<std::size_t> fetched_buckets_;
  std::vector<bool> awaited_;
  ExchangeTimes exchange_times_;
};

}  // namespace trireme
