// Where a backend's kernels run and keep their memory: the host or a GPU. The runtime allocates, copies and waits
// through it. Made by backends; used by runtime/executable and runtime/variable_store. Other devices than the host are
// asynchronous: kernels, uploads and downloads are enqueued and run in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/plan/compile_options.hpp"

namespace trireme {

struct RunContext;

class OutOfMemory : public Error {
 public:
  // share: the fraction that would fit of what grows with the batch.
  OutOfMemory(const std::string& message, double share) : Error(ErrorKind::bad_input, message), share_(share) {}
  double fitting_share() const { return share_; }

 private:
  double share_;
};

class DeviceMemory {  // owned device memory; may be empty
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<void> data, std::int64_t bytes) : data_(std::move(data)), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  void* at(std::int64_t offset) const { return static_cast<std::byte*>(data_.get()) + offset; }

 private:
  std::shared_ptr<void> data_;
  std::int64_t bytes_ = 0;
};

class DeviceGraph {  // work captured once and launched repeatedly as a whole
 public:
  virtual ~DeviceGraph() = default;
  virtual void launch() = 0;
};

// Devices, each with its own process or thread, that sum or exchange values without their hosts.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  // Replaces the values by the sum over all devices of factor · values; the factor is in device memory. Enqueued in the
  // current stream. All devices must enqueue the same sums in the same order.
  virtual void sum(float* values, std::int64_t elements, const float* factor) = 0;
  // Enqueued likewise; what follows in the stream waits for the other device. Transfers from one device to another have
  // the same order on both.
  virtual void send(const void* memory, std::int64_t bytes, int to) = 0;
  virtual void receive(void* memory, std::int64_t bytes, int from) = 0;
};

struct GroupPlan {
  std::string name;
  int rank = 0, ranks = 1;
  double timeout_seconds = 0;  // a device that waits longer for the others gives up with an Error
  // What it waits for now, for that Error: "receive of 'fc1' from rank 2 (beta)". Empty: nothing.
  std::function<std::string()> waits_for = {};
};

class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;

  virtual std::string name() const = 0;                    // "cpu", "cuda:0 (NVIDIA H200)"
  virtual std::string identity() const { return name(); }  // unique among the devices of all hosts
  // Whether host code can access its memory, and kernels have finished when run() returns.
  virtual bool is_host() const { return false; }

  // Zeroed. If it does not fit, Error(bad_input) says what it was for, how much was needed and how much there is.
  virtual DeviceMemory allocate(std::int64_t bytes, std::string_view what) = 0;
  // How much more can be allocated. Unlimited for the host, which reports exhaustion in other ways.
  virtual std::int64_t free_bytes() const { return std::numeric_limits<std::int64_t>::max(); }
  // Zeroed host memory with the fastest copies from and to the device.
  virtual DeviceMemory allocate_staging(std::int64_t bytes) = 0;
  // Makes host memory allocated elsewhere as fast, if the system allows it.
  virtual DeviceMemory use_as_staging(std::shared_ptr<void> memory, std::int64_t bytes) {
    return {std::move(memory), bytes};
  }

  // Host memory must stay valid and unchanged until synchronize().
  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;  // within device memory
  // Waits until all enqueued work is done; throws if some of it failed.
  virtual void synchronize() = 0;

  // Sets what later kernels read from the context: seed, step, first sample.
  virtual void set_context(const RunContext& context) = 0;
  // Captures the work that the function enqueues instead of running it; nullptr if unsupported.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) = 0;

  // Streams are queues of work that do not wait for each other. Work goes to the current stream, initially 0.
  virtual int streams() const { return 1; }
  virtual void set_stream(int) {}
  // Besides the compute streams there may be two that move gradients during backward: outward, to the host or other
  // devices, and inward, on which they come back and are applied.
  virtual int outward_stream() const { return 0; }
  virtual int inward_stream() const { return 0; }
  virtual int input_stream() const { return 0; }  // brings the next run's inputs during a run
  virtual int add_stream() { return 0; }          // another one, beside those in use
  // A point in the current stream, for other streams of the same run or graph and, outside graphs, for the host.
  virtual int record_event() { return 0; }
  virtual void wait_event(int /*event*/) {}
  virtual void wait_event_on_host(int /*event*/) {}
  virtual bool has_passed(int /*event*/) { return true; }

  // One device names a new group, and all join it by that name (collective). Empty name if unsupported.
  virtual bool has_groups() const { return false; }
  virtual std::string name_group() { return {}; }
  virtual std::unique_ptr<DeviceGroup> join_group(const GroupPlan&) { return nullptr; }

  // Measured flops of a matrix product in this precision, and bytes read plus written of a copy; 0 if not measured.
  struct Peak {
    double flops_per_second = 0;
    double bytes_per_second = 0;
  };
  virtual Peak measure_peak(Precision) { return {}; }
  virtual std::int64_t allocated_bytes() const { return 0; }
  virtual std::vector<std::pair<std::string, std::string>> facts() { return {}; }  // for records: name, value

  // Records the time in the current stream under this number; and the seconds between two such times.
  virtual void record_time(int) {}
  virtual double seconds_between(int /*first*/, int /*second*/) { return 0; }
};

ComputeDevice& host_device();

}  // namespace trireme
