// Agreement by all-reduce: every replica has all variables, and gradients are averaged before they are applied. A
// separate thread reduces each bucket once backward has completed it, in plan order on all ranks, and sleeps otherwise.
// Made by Replicas; called by Executable through GradientExchange.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/parallel/gradient_sync.hpp"
#include "trireme/parallel/replicas.hpp"
#include "trireme/perf/recorder.hpp"

namespace trireme::parallel {

class AllReduceSync : public GradientSync {
 public:
  // Only this object may use the communicator meanwhile.
  AllReduceSync(comm::Communicator& communicator, ReplicaOptions options);
  ~AllReduceSync() override;  // in the middle of a step, abandons the reductions under way

  // Gradients use this object's memory, shared with the node's replicas if possible.
  void configure(const Graph& graph, SessionOptions& options) override;
  void open(std::vector<GradientBucket> buckets, std::uint64_t step) override;

  Exchange kind() const override { return Exchange::reduce; }
  void begin_step(std::uint64_t step) override;
  void start(int bucket) override;
  bool done(int bucket) override;
  void wait(int bucket) override;

  void set_vote(float value) override { vote_ = value; }
  float agreed() const override { return thread_.joinable() ? agreed_ : vote_; }  // a single replica agrees with itself
  void set_weight(float weight) override { weight_ = weight; }

  std::span<const GradientBucket> buckets() const override { return buckets_; }
  std::span<const double> communication_seconds() const override { return bucket_seconds_; }
  const comm::AllReducer& reducer() const { return *reducer_; }

 private:
  // Collective; once. Also held by this object, whose thread may outlive the session.
  std::shared_ptr<void> gradient_memory(std::int64_t bytes);
  void name_spans();
  void work() noexcept;
  void reduce_next(std::uint32_t number);
  void release(std::uint32_t number);  // lets the thread reduce buckets up to this one
  // Bucket numbers continue from step to step; this is one past this bucket of this step.
  std::uint32_t number_after(int bucket) const;

  comm::Communicator& communicator_;
  ReplicaOptions options_;
  std::shared_ptr<comm::SharedMemory> arena_;
  std::shared_ptr<AlignedMemory> own_memory_;  // if none can be shared
  std::unique_ptr<comm::AllReducer> reducer_;
  std::unique_ptr<comm::AllReducer> vote_reducer_;  // exact, whatever the gradients' wire format
  std::vector<GradientBucket> buckets_;
  std::vector<double> bucket_seconds_;
  perf::Track* track_ = nullptr;
  std::vector<std::int32_t> labels_;  // [bucket]
  std::uint64_t step_ = 0;
  std::uint32_t first_ = 0;      // number of this step's first bucket
  std::uint32_t completed_ = 0;  // one past the last complete bucket
  float vote_ = 0, agreed_ = 0, weight_ = 1;

  std::atomic<std::uint32_t> released_{0};  // buckets that may be reduced
  std::atomic<std::uint32_t> reduced_{0};   // buckets that are reduced
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace trireme::parallel
