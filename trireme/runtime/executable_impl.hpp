// What an Executable is made of, for its sources and BatchSplit alone: how a schedule is walked, and the part of it
// that runs on a device that is not the host (executable_device.cpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/gradient_arithmetic.hpp"
#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

// The place of an executable among those that run copies of one program on shares of a batch; see batch_split.hpp.
struct GroupPlace {
  int group = 0;
  int groups = 1;
  bool own_statistics = false;  // batch statistics of each group's samples instead of all
  Barrier* barrier = nullptr;
};

// Over how many of them statistics are taken.
int statistics_groups(const GroupPlace& place, const ReplicaPlace& replica);
// What the kernels of one of them tell the others.
std::int64_t shared_bytes(const Program& program);

class Executable::Impl {
 public:
  Impl(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, const GroupPlace& place,
       const ReplicaPlace& replica, void* shared);
  ~Impl();

  void run_share(std::int64_t sample_offset);
  void count_run();
  void set_exchange(GradientExchange* exchange, const GradientOptions& options);
  std::vector<GradientBucket> gradient_buckets(MemorySide side) const;
  void set_recorder(perf::Recorder& recorder);
  int buffer_of(Tensor placeholder) const;
  void* host_address(int buffer) const;

 private:
  friend class Executable;  // which says what its parts are in public
  class OnDevice;

  // A schedule, and how it is walked: step by step on the host, in parts on a device, which captures each.
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
    // On a device, by step.
    std::vector<int> streams;
    std::vector<std::vector<int>> waits_for;  // steps in other streams that have to be done
    std::vector<bool> has_event;              // somebody in another stream waits for it
  };
  struct Merge {  // the gradient of a variable in all groups
    std::vector<float*> groups;
    std::int64_t elements = 0;
  };
  struct Trace {                       // where spans go, and their labels
    std::vector<perf::Track*> tracks;  // [thread of the pool], one without; null: nobody traces
    perf::Track* device = nullptr;     // null also if the device is the host
    std::vector<std::int32_t> instructions;
    std::int32_t wait = 0, end_exchange = 0, barrier = 0, gradients = 0, launch = 0, wait_for_device = 0,
                 device_run = 0;
  };

  // Before runs: executable_plan.cpp.
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
  void* address(int buffer) const;

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

// Runs on a device that is not the host. Work is enqueued in parts, which are captured as graphs and launched from
// their second run on; inputs are uploaded if they have changed, gradients and values that the host works on travel in
// streams of their own while backward goes on, and what is fetched is downloaded.
class Executable::Impl::OnDevice {
 public:
  explicit OnDevice(Impl& owner);

  // What a buffer that is fed or fetched has on the host's side.
  void* host_address(int buffer) const { return staging_.at(staged_.at(buffer)); }
  void input_changed(int buffer);
  void send_inputs();
  void set_beside(std::function<void()> work) { beside_ = std::move(work); }

  // Streams of the steps, and the parts of a walk.
  void plan(Walk& walk) const;
  // After the owner's exchange was set.
  void plan_exchange();

  void begin_run();
  void end_run();
  void count_run() { values_seen_ = owner_.store_.version(); }
  double wait();
  void run(Walk::Part& part);
  // Gradients and values that the host works on.
  void download(int bucket);
  void wait_for_download(int bucket);
  void expect_values(int bucket) { new_values_[bucket] = served(); }
  void upload(int bucket);
  void apply(std::size_t update);

 private:
  bool staged() const;
  void work_beside();
  bool served() const { return is_served(owner_.gradient_options_.exchange); }
  std::int64_t bytes_of(int buffer) const;
  void stage_buffers();
  void take_inputs();
  void enqueue(const Walk& walk, const Walk::Part& part);
  void enqueue_instruction(std::size_t index);
  void add_instruction_times();
  // While instructions are timed they run one after the other.
  void set_stream(int stream) const { device_.set_stream(owner_.profiling_ ? 0 : stream); }
  void wait_for_stream(int stream) const;
  void add_device_span(double seconds) const;

  Impl& owner_;
  ComputeDevice& device_;
  const Program& program_;
  std::function<void()> beside_;
  bool works_beside_ = false;  // in this run, still
  // What is fed and fetched, on the host's side.
  DeviceMemory staging_;
  std::map<int, std::int64_t> staged_;  // buffer -> offset
  std::set<int> changed_inputs_;        // buffers that are uploaded by the next run
  // Inputs on their way while the device is at a run, which still reads those before.
  struct SentInputs {
    DeviceMemory memory;                 // on the device
    std::map<int, std::int64_t> places;  // buffer -> offset
    std::set<int> buffers;               // that the next run takes from there
    // Events; -1: none yet.
    int arrived = -1;
    int taken = -1;
  };
  SentInputs sent_;
  int read_inputs_ = -1;  // event: the host's side may be written again
  bool warmed_up_ = false;
  std::vector<std::size_t> timed_;  // instructions of this run that are timed
  // [bucket]: gradients in both memories, if the host works on them.
  struct Copy {
    float* on_device;
    float* on_host;
    std::int64_t bytes;
  };
  std::vector<std::vector<Copy>> gradient_copies_;
  std::vector<std::vector<NodeId>> bucket_variables_;
  std::vector<int> downloaded_;       // [bucket]: event, in this run
  std::vector<bool> new_values_;      // [bucket]: the host may have some, if they are served
  bool inward_busy_ = false;          // what follows in the first stream has to wait for the inward one
  bool behind_first_stream_ = false;  // what follows in the inward stream has to wait for the first one
  std::uint64_t values_seen_ = 0;     // store version after the last run
};

}  // namespace trireme
