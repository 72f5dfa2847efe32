// A program with memory: the arena, the constants, bound kernels. Made by Session::prepare; the loop of a benchmark or
// a trainer writes inputs, calls run(), reads outputs; nothing in it allocates or looks up. A run walks the program's
// schedule (plan/schedule.hpp), on threads of the host or on the streams of a device: see executable_impl.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme::perf {
class Recorder;
}

namespace trireme {

class GradientExchange;
class InterOpPool;
class ReplicaStatistics;
class VariableStore;
enum class MemorySide : std::uint8_t;
struct GradientBucket;
struct GradientOptions;
struct GroupPlace;
struct Program;

// The place of a program among its replicas in other processes, if batch statistics are taken over all of them.
struct ReplicaPlace {
  ReplicaStatistics* statistics = nullptr;  // none: each replica has its own
  int replica = 0;
  int replicas = 1;
};

class Executable {
 public:
  // A pool, if one is given, runs independent instructions at the same time. `shared` has shared_bytes(program) for
  // each of statistics_groups(), one after the other.
  Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, const GroupPlace& place,
             const ReplicaPlace& replica, void* shared);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Program& program() const;

  // Plain row-major memory of a placeholder; write it before run(). Throws if the fetches do not need the placeholder.
  // If the device is not the host, it is copied there by the next run(); whoever keeps the span and writes to it again
  // says so with input_changed().
  std::span<float> input_f32(Tensor placeholder);
  std::span<std::int32_t> input_i32(Tensor placeholder);
  void input_changed(Tensor placeholder);
  // What has changed so far is complete: a device begins to fetch it, beside the run that it is at, for the next one.
  void send_inputs();
  // Called once in each run, on its thread, when the host would first wait for gradients of a device: a chance to send
  // the next inputs. Not called if the host does not work on gradients; run() returns before the device is done then.
  void set_beside(std::function<void()> work);
  void feed(Tensor placeholder, const HostTensor& value);  // checks the type
  bool needs(Tensor placeholder) const;
  std::vector<NodeId> placeholders() const;

  void run();
  // The two halves of run(), for groups: what all do at the same time, and what one does after all have ended.
  void run_share();
  void count_run();
  // If the device is not the host, run() returns before it is done; this waits, and tells how long the device took.
  double wait();
  // Plain memory of a fetch, valid until the next run(); by position in the fetches. Waits for the device.
  std::span<const float> output(int fetch) const;
  HostTensor fetched(int fetch) const;

  // From now on gradients are treated so before they are applied; for a program that trains. The exchange makes the
  // transfers of options.exchange, in the first group of several; it is null if that is none.
  void set_exchange(GradientExchange* exchange, const GradientOptions& options);
  // For an exchange that goes before this does: what a device has captured of it is dropped. No run follows.
  void forget_exchange() noexcept;
  // What the last run with an exchange spent on updates and on waiting for gradients, in seconds.
  struct ExchangeTimes {
    double update = 0;
    double wait = 0;
  };
  const ExchangeTimes& exchange_times() const;
  // One per update, in the order of their instructions: what an exchange works on. On the host's side of a device they
  // are copies, which runs bring and fetch; the learning rate is on the host in any case.
  std::vector<GradientBucket> gradient_buckets(MemorySide side) const;
  double gradient_norm() const;  // see GradientArithmetic::norm()

  // Seconds of each instruction are added up from now on, in instructions' order.
  void enable_profile();
  struct Profile {
    std::vector<double> seconds;
    std::int64_t runs = 0;
  };
  const Profile& profile() const;
  // Runs leave spans from now on, while the recorder is on: every instruction on the host, and waiting. If the device
  // is not the host, its run as a whole.
  void set_recorder(perf::Recorder& recorder);

  std::int64_t sample_offset = 0;  // see RunContext

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme
