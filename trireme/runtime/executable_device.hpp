// The part of Executable that runs on a device that is not the host. Work is enqueued in parts, which are captured
// as graphs and launched from their second run on; inputs are uploaded if they have changed, gradients and values that
// the host works on travel in streams of their own while backward goes on, and what is fetched is downloaded.
#pragma once

#include <map>
#include <set>

#include "trireme/runtime/executable.hpp"

namespace trireme {

class Executable::OnDevice {
 public:
  explicit OnDevice(Executable& owner);

  // What a buffer that is fed or fetched has on the host's side.
  void* host_address(int buffer) const { return staging_.at(staged_.at(buffer)); }
  void input_changed(int buffer);
  void send_inputs();

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
  bool served() const { return owner_.gradient_options_.exchange == Exchange::serve; }
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

  Executable& owner_;
  ComputeDevice& device_;
  const Program& program_;
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
