// A program bound to memory, made by Session::prepare. Loops write inputs, run() and read outputs without allocation or
// lookup. A run walks the schedule (plan/schedule.hpp) on host threads or device streams: see executable_impl.hpp.
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
class StageLink;
class VariableStore;
enum class MemorySide : std::uint8_t;
struct GradientBucket;
struct GradientOptions;
struct GroupPlace;
struct Program;

// A program's place among replicas in other processes, if batch statistics span all of them.
struct ReplicaPlace {
  ReplicaStatistics* statistics = nullptr;  // null: each replica has its own
  int replica = 0;
  int replicas = 1;
};

class Executable {
 public:
  // A pool runs independent instructions concurrently. `shared`: shared_bytes(program) for each of statistics_groups().
  Executable(Program program, VariableStore& store, std::uint64_t seed, InterOpPool* pool, const GroupPlace& place,
             const ReplicaPlace& replica, void* shared);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Program& program() const;

  // Plain row-major memory of a placeholder; write it before run(). Throws if the fetches do not need the placeholder.
  // On a device, the next run() uploads it; after writing to the span again, call input_changed().
  std::span<float> input_f32(Tensor placeholder);
  std::span<std::int32_t> input_i32(Tensor placeholder);
  void input_changed(Tensor placeholder);
  // Changed inputs are complete: a device starts to fetch them for the next run during the current one.
  void send_inputs();
  // Called once per run, on its thread, when the host would first wait for a device's gradients: a chance to send the
  // next inputs. Not called if the host does not process gradients; then run() returns before the device is done.
  void set_beside(std::function<void()> work);
  void feed(Tensor placeholder, const HostTensor& value);  // checks the type
  bool needs(Tensor placeholder) const;
  std::vector<NodeId> placeholders() const;

  void run();
  // The two halves of run(), for groups: one for all concurrently, one for a single caller after all have ended.
  void run_share();
  void count_run();
  double wait();  // for the device, if it is not the host; returns its seconds
  // Plain memory of a fetch, by position, valid until the next run(). Waits for the device.
  std::span<const float> output(int fetch) const;
  HostTensor fetched(int fetch) const;

  // How to treat gradients before applying them from now on; for programs that train. The exchange performs the
  // transfers of options.exchange, in the first of several groups; null if that is none.
  void set_exchange(GradientExchange* exchange, const GradientOptions& options);
  // Of a program that is a stage of a pipeline: what transfers its messages.
  void set_link(StageLink* link);
  // Call before the exchange is destroyed: drops what a device captured of it. No run may follow.
  void forget_exchange() noexcept;
  // Seconds that the last run spent on updates and waiting for gradients, with an exchange, and for other stages.
  struct ExchangeTimes {
    double update = 0;
    double wait = 0;
    double stages = 0;  // waiting for other stages of a pipeline; on a device not known
  };
  const ExchangeTimes& exchange_times() const;
  // One per update, in instruction order; on a device's host side copies, but the learning rate is always on the host.
  std::vector<GradientBucket> gradient_buckets(MemorySide side) const;
  double gradient_norm() const;  // see GradientArithmetic::norm()

  void enable_profile();  // adds up the seconds of each instruction from now on
  struct Profile {
    std::vector<double> seconds;
    std::int64_t runs = 0;
  };
  const Profile& profile() const;
  // While the recorder is on, runs leave spans: instructions and waits on the host; on a device, its run as a whole.
  void set_recorder(perf::Recorder& recorder);

  std::int64_t sample_offset = 0;  // see RunContext

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme
