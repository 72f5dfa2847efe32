// The implementation of Executable, private to its sources and BatchSplit; executable_device.cpp has the device part.
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
#include "trireme/runtime/stage_line.hpp"
#include "trireme/runtime/stage_link.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {

// An executable's place among copies of one program that run on shares of a batch; see batch_split.hpp.
struct GroupPlace {
  int group = 0;
  int groups = 1;
  bool own_statistics = false;  // batch statistics per group instead of over all
  Barrier* barrier = nullptr;
};

int statistics_groups(const GroupPlace& place, const ReplicaPlace& replica);
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
  template <typename T>
  std::span<T> input(int buffer);

 private:
  friend class Executable;  // whose public interface documents the parts
  class OnDevice;

  // A schedule and how to walk it: step by step on the host; on a device in parts, each captured.
  struct Walk {
    struct Part {
      int first = 0, last = 0;        // steps
      int finish = -1;                // index of a finish of the schedule; -1: none
      bool on_device = false;         // given to the device as a whole
      std::vector<int> buckets = {};  // whose gradients it overwrites: an earlier micro-batch's leave first
      std::unique_ptr<DeviceGraph> graph = nullptr;
    };
    Schedule schedule;
    std::vector<Part> parts;
    std::vector<std::vector<int>> successors;  // of each step: those that must wait for it
    // With a pool, each part is a step.
    std::vector<int> predecessors;  // how many each step waits for
    // On a device, by step.
    std::vector<int> streams;
    std::vector<std::vector<int>> waits_for;  // steps in other streams that must be done
    std::vector<bool> has_event;              // another stream waits for it
  };
  struct Merge {  // the gradient of a variable in all groups
    std::vector<float*> groups;
    std::int64_t elements = 0;
  };
  struct Trace {                       // where spans go, and their labels
    std::vector<perf::Track*> tracks;  // [pool thread], one without a pool; null: no tracing
    perf::Track* device = nullptr;     // also null if the device is the host
    std::vector<std::int32_t> instructions;
    std::int32_t wait = 0, end_exchange = 0, stage = 0, barrier = 0, gradients = 0, launch = 0, wait_for_device = 0,
                 device_run = 0;
    StageLine line;  // also without a trace if the device is not the host
  };

  // Planning: executable_plan.cpp.
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
  void wait_for_stage(std::size_t instruction, int thread);
  std::vector<StageMessage> messages() const;
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
  std::unique_ptr<OnDevice> on_device_;  // null on the host
  GradientExchange* exchange_ = nullptr;
  StageLink* link_ = nullptr;
  GradientOptions gradient_options_;
  std::unique_ptr<GradientArithmetic> arithmetic_;  // if gradients are accumulated or transformed
  std::vector<std::vector<Merge>> merges_;          // [bucket], if groups of cores have their own gradients
  Walk update_, collect_;                           // a run with an update, and one that only collects gradients
  Walk* current_ = &update_;
  int started_ = 0;  // buckets of this run whose transfer has started
  std::function<void(int, int)> perform_item_;
  RunContext context_;
  std::uint64_t variables_seen_ = 0;  // store version at the last run of the once-only instructions
  ExchangeTimes exchange_times_;
  bool profiling_ = false;
  Profile profile_;
  Trace trace_;
};

// Runs on a device that is not the host: enqueues parts, captured as graphs and launched from their second run on;
// uploads changed inputs, downloads fetches, and moves the host's gradients and values in separate streams.
class Executable::Impl::OnDevice {
 public:
  explicit OnDevice(Impl& owner);

  void* host_address(int buffer) const { return staging_.at(staged_.at(buffer)); }
  void input_changed(int buffer);
  void send_inputs();
  void set_beside(std::function<void()> work) { beside_ = std::move(work); }

  void plan(Walk& walk) const;  // assigns streams to steps and cuts a walk into parts
  void plan_exchange();         // call after the owner's exchange was set

  void begin_run();
  void end_run();
  void count_run() { values_seen_ = owner_.store_.version(); }
  double wait();
  void capture(Walk& walk);
  void run(Walk::Part& part);
  // Gradients and values that the host processes.
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
  void set_stream(int stream) const { device_.set_stream(owner_.profiling_ ? 0 : stream); }
  void wait_for_stream(int stream) const;
  void add_device_span(double seconds) const;

  Impl& owner_;
  ComputeDevice& device_;
  const Program& program_;
  std::function<void()> beside_;
  bool works_beside_ = false;  // still, in this run
  // Host copies of what is fed and fetched.
  DeviceMemory staging_;
  std::map<int, std::int64_t> staged_;  // buffer -> offset
  std::set<int> changed_inputs_;        // buffers that the next run uploads
  // Inputs sent while the device is in a run that still reads the previous ones.
  struct SentInputs {
    DeviceMemory memory;                 // on the device
    std::map<int, std::int64_t> places;  // buffer -> offset
    std::set<int> buffers;               // that the next run takes from there
    // Events; -1: none yet.
    int arrived = -1;
    int taken = -1;
  };
  SentInputs sent_;
  int read_inputs_ = -1;  // event: the host copy may be written again
  bool warmed_up_ = false;
  std::vector<std::size_t> timed_;  // instructions timed in this run
  // [bucket]: gradients in both memories, if the host processes them.
  struct Copy {
    float* on_device;
    float* on_host;
    std::int64_t bytes;
  };
  std::vector<std::vector<Copy>> gradient_copies_;
  std::vector<std::vector<NodeId>> bucket_variables_;
  std::vector<int> downloaded_;       // [bucket]: event, in this run
  std::vector<bool> new_values_;      // [bucket]: the host may have some, if served
  bool inward_busy_ = false;          // later work in the first stream must wait for the inward one
  bool behind_first_stream_ = false;  // later work in the inward stream must wait for the first one
  std::uint64_t values_seen_ = 0;     // store version after the last run
};

}  // namespace trireme
