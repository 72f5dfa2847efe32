// A program with memory: the arena, the constants, bound kernels. Made by Session::prepare; the loop of a benchmark or
// a trainer writes inputs, calls run(), reads outputs; nothing in it allocates or looks up. A run walks the program's
// schedule (plan/schedule.hpp), on threads of the host or on the streams of a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/runtime/gradient_arithmetic.hpp"
#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

class InterOpPool;

// The place of an executable among those that run copies of one program on shares of a batch; see batch_split.hpp.
struct GroupPlace {
  int group = 0;
  int groups = 1;
  bool own_statistics = false;  // batch statistics of each group's samples instead of all
  Barrier* barrier = nullptr;
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

class Executable {
 public:
  Executable(const Executable&) = delete;
  // A pool, where one is given, runs independent instructions at the same time. `shared` has shared_bytes(program) for
  // each of statistics_groups(), one after the other.
  Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, GroupPlace place,
             ReplicaPlace replica, void* shared);
  ~Executable();

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

  // From now on gradients are treated so before they are applied; for a program that trains. The exchange makes the
  // transfers of options.exchange, in the first group of several; it is null if that is none.
  void set_exchange(GradientExchange* exchange, const GradientOptions& options = {});
  // For an exchange that goes before this does: what a device has recorded of it is dropped. No run follows.
  void forget_exchange() noexcept;
  const GradientOptions& gradient_options() const { return gradient_options_; }
  // What the last run with an exchange spent on updates and on waiting for gradients, in seconds.
  struct ExchangeTimes {
    double update = 0;
    double wait = 0;
  };
  const ExchangeTimes& exchange_times() const { return exchange_times_; }
  // One per update, in the order of their instructions: what an exchange works on. On the host's side of a device they
  // are copies, which runs bring and fetch; the learning rate is on the host in any case.
  std::vector<GradientBucket> gradient_buckets(MemorySide side = MemorySide::host) const;
  double gradient_norm() const { return arithmetic_ ? arithmetic_->norm() : 0; }  // see GradientArithmetic::norm()

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

  std::int64_t sample_offset = 0;  // see RunContext

 private:
  class OnDevice;  // executable_device.cpp: where the device is not the host
  // A schedule, and how it is walked: step by step on the host, in parts on a device, which records each.
  struct Walk {
    struct Part {
      int first = 0, last = 0;  // steps
      int finish = -1;          // these are one of the schedule's finishes
      bool on_device = false;   // given to the device as a whole
      std::unique_ptr<DeviceGraph> graph = nullptr;
    };
    Schedule schedule;
    std::vector<Part> parts;
    std::vector<std::vector<int>> successors;  // of each step: those that have to wait for it
    // With a pool: each part is a step.
    std::vector<int> predecessors;  // how many each step waits for
    std::vector<int> items;
    // On a device, by step.
    std::vector<int> streams;
    std::vector<std::vector<int>> waits_for;  // steps in other streams that have to be done
    std::vector<bool> has_event;              // somebody in another stream waits for it
  };
  struct Merge {  // the gradient of a variable in all groups
    std::vector<float*> groups;
    std::int64_t elements = 0;
  };
  struct Trace {                       // where spans go, and their labels; see executable_trace.cpp
    std::vector<perf::Track*> tracks;  // [thread of the pool], one without; null: nobody traces
    perf::Track* device = nullptr;     // null also where the device is the host
    std::vector<std::int32_t> instructions;
    std::int32_t wait = 0, end_exchange = 0, barrier = 0, gradients = 0, launch = 0, wait_for_device = 0,
                 device_run = 0;
  };

  void bind(bool updates_only);
  Walk plan_walk(bool collects) const;
  void plan_merges();
  int first_use(const std::vector<NodeId>& variables) const;
  void walk(Walk& walk);
  void perform(Walk::Part& part, int thread);
  void perform(const Step& step, int thread);
  void execute(std::size_t index, int thread);
  void run_kernel(std::size_t index);
  void wait_for_transfer(int bucket, int thread);
  void end_exchange();
  double loss_scale() const;
  void run_once_instructions();
  int buffer_of(Tensor placeholder) const;
  void* address(int buffer) const;
  void* host_address(int buffer) const;

  Program program_;
  VariableStore& store_;
  ComputeDevice& device_;
  std::uint64_t seed_;
  GroupPlace place_;
  ReplicaPlace replica_;
  void* shared_;
  DeviceMemory arena_, constants_;
  InterOpPool* pool_;
  std::unique_ptr<OnDevice> on_device_;  // none on the host
  GradientExchange* exchange_ = nullptr;
  GradientOptions gradient_options_;
  std::unique_ptr<GradientArithmetic> arithmetic_;  // if gradients are accumulated or transformed
  std::vector<std::vector<Merge>> merges_;          // [bucket], if groups of cores have gradients of their own
  Walk update_, collect_;                           // a run that makes an update, and one that only collects gradients
  Walk* current_ = &update_;
  int started_ = 0;  // buckets of this run whose transfer has begun
  std::function<void(int, int)> perform_item_;
  RunContext context_;
  std::uint64_t variables_seen_ = 0;  // store version at the last run of the instructions that run once
  ExchangeTimes exchange_times_;
  bool profiling_ = false;
  Profile profile_;
  Trace trace_;
};

}  // namespace trireme
