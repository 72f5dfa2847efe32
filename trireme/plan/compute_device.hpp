// Where a backend's kernels run and have their memory: the host itself, or a GPU beside it. The runtime allocates,
// copies and waits through this. Made by backends; used by runtime/executable and runtime/variable_store.
//
// What is given to a device that is not the host is done later, in the order in which it was given: kernels, uploads
// and downloads alike.
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

namespace trireme {

struct RunContext;

// With bf16 and fp16, activations and their gradients are stored and multiplied in that type where there are kernels
// for it. Variables, their gradients, the optimizer's state, batch statistics and losses are f32 in every precision,
// and so are sums. With tf32 all is stored in f32, and products are of factors with ten bits. fp16 has less range than
// f32: train with a scaled loss (LossScale in optim/optimizer.hpp), or small gradients are lost.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };

// A program does not fit into a device's memory.
class OutOfMemory : public Error {
 public:
  // share: of what grows with the batch, so much would fit.
  OutOfMemory(const std::string& message, double share) : Error(ErrorKind::bad_input, message), share_(share) {}
  double fitting_share() const { return share_; }

 private:
  double share_;
};

// Memory that belongs to a device, owned. Empty where nothing was asked for.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<void> data, std::int64_t bytes) : data_(std::move(data)), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  void* at(std::int64_t offset) const { return static_cast<std::byte*>(data_.get()) + offset; }

 private:
  std::shared_ptr<void> data_;
  std::int64_t bytes_ = 0;
};

// Work that was recorded once and is given to the device again and again as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// Devices that sum in each other's memory without their hosts, each of another process or thread.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  // Makes the values the sum over all devices of factor · values; the factor lies in the device's memory. Given to the
  // current lane as kernels are. All give the same sums in the same order.
  virtual void sum(float* values, std::int64_t elements, const float* factor) = 0;
};

struct GroupPlan {
  std::string name;
  int rank = 0, ranks = 1;
  double timeout_seconds = 0;  // after which a device that waits for the others gives up, with an Error
};

class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;

  virtual std::string name() const = 0;  // "cpu", "cuda:0 (NVIDIA H200)"
  // Unlike that of any other device, whoever asks.
  virtual std::string identity() const { return name(); }
  // Host code reads and writes its memory, and a kernel has ended when its run() returns.
  virtual bool is_host() const { return false; }

  // Zeroed. Error(bad_input) that says what for, how much, and how much there is, if it does not fit.
  virtual DeviceMemory allocate(std::int64_t bytes, std::string_view what) = 0;
  // How much more there is; a host that runs out of memory tells otherwise.
  virtual std::int64_t free_bytes() const { return std::numeric_limits<std::int64_t>::max(); }
  // Host memory that copies from and to the device are fastest with. Zeroed.
  virtual DeviceMemory allocate_staging(std::int64_t bytes) = 0;
  // Host memory of somebody else, made as fast as that where the system lets us.
  virtual DeviceMemory use_as_staging(std::shared_ptr<void> memory, std::int64_t bytes) {
    return {std::move(memory), bytes};
  }

  // The host's memory has to stay as it is until synchronize().
  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  // Within the device's memory.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  // Waits until all that was given is done; throws what has gone wrong.
  virtual void synchronize() = 0;

  // What kernels that follow read of the context: seed, step, first sample.
  virtual void set_context(const RunContext& context) = 0;
  // The work that the function gives is kept instead of done; nullptr where a device cannot.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;

  // Lanes are sequences of work that do not wait for each other. Work goes to the current one, 0 at first.
  virtual int lanes() const { return 1; }
  virtual void set_lane(int) {}
  // Beside those that kernels are spread over there may be two, so that gradients come and go during backward: one in
  // which they leave, by copies to the host or to other devices, and one in which they come back and are applied.
  virtual int outward_lane() const { return 0; }
  virtual int inward_lane() const { return 0; }
  // One in which the next run's inputs come during a run.
  virtual int input_lane() const { return 0; }
  // A point in the current lane that another lane can wait for in the same run or recording, or, outside of recordings,
  // the host.
  virtual int signal() { return 0; }
  virtual void wait_for(int /*signal*/) {}
  virtual void wait_on_host(int /*signal*/) {}

  // One device names a new group, and all join it by that name: collective. Devices without groups have no names.
  virtual bool has_groups() const { return false; }
  virtual std::string name_group() { return {}; }
  virtual std::unique_ptr<DeviceGroup> join_group(const GroupPlan&) { return nullptr; }

  // The most that it can do, measured: multiply-adds of matrices whose factors have this type, and bytes copied, read
  // and written ones counted. Zeros where there is no such measurement.
  struct Peak {
    double flops_per_second = 0;
    double bytes_per_second = 0;
  };
  virtual Peak measure_peak(Precision) { return {}; }
  // Memory of it that is allocated now.
  virtual std::int64_t allocated_bytes() const { return 0; }
  // What is known about it, for records: name and value.
  virtual std::vector<std::pair<std::string, std::string>> facts() { return {}; }

  // A moment in the current lane, by number, and the seconds between two that have passed.
  virtual void mark(int) {}
  virtual double seconds_between(int /*first*/, int /*second*/) { return 0; }
};

// The host, for backends that compute on it.
ComputeDevice& host_device();

}  // namespace trireme
