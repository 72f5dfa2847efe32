// Agreement by all-reduce: every replica has all variables, and gradients are averaged before they are applied. A
// separate thread reduces each bucket once backward has completed it, in plan order on all ranks, and sleeps otherwise.
// If replicas divide the optimizer's state, it also updates its slice of the variables between the halves of the
// all-reduce.
// Made by Replicas; called by Executable through GradientExchange.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/parallel/bucket_work.hpp"
#include "trireme/parallel/gradient_sync.hpp"
#include "trireme/parallel/optimizer_shard.hpp"
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

  Exchange kind() const override { return options_.shard_optimizer ? Exchange::shard : Exchange::reduce; }
  void begin_step(std::uint64_t step) override;
  void start(int bucket) override { order({bucket, Work::whole}); }
  void scatter(int bucket) override { order({bucket, Work::scatter}); }
  void gather(int bucket) override { order({bucket, Work::gather, *buckets_[bucket].learning_rate}); }
  bool done(int bucket) override;
  void wait(int bucket) override;

  void pull_state() override;
  void drop_state() override;

  void set_vote(float value) override { vote_ = value; }
  float agreed() const override { return thread_.joinable() ? agreed_ : vote_; }  // a single replica agrees with itself
  void set_weight(float weight) override { weight_ = weight; }

  std::span<const GradientBucket> buckets() const override { return buckets_; }
  std::span<const double> communication_seconds() const override { return bucket_seconds_; }
  const comm::AllReducer& reducer() const { return *reducer_; }
  const OptimizerShard* shard() const { return shard_.get(); }  // null: this replica has the whole state

 private:
  using Work = AllReducePart;
  struct Order {  // for the thread
    int bucket = 0;
    Work work = Work::whole;
    float learning_rate = 0;  // gather
  };
  // Collective; once. Also held by this object, whose thread may outlive the session.
  std::shared_ptr<void> gradient_memory(std::int64_t bytes);
  void name_spans();
  void work() noexcept;
  void order(const Order& order);
  void carry_out(const Order& order);
  void reduce(const Order& order);
  void release(std::uint32_t number);  // lets the thread carry out orders up to this one

  comm::Communicator& communicator_;
  ReplicaOptions options_;
  std::shared_ptr<comm::SharedMemory> arena_;
  std::shared_ptr<AlignedMemory> own_memory_;  // if none can be shared
  std::unique_ptr<comm::AllReducer> reducer_;
  std::unique_ptr<comm::AllReducer> vote_reducer_;  // exact, whatever the gradients' wire format
  std::unique_ptr<OptimizerShard> shard_;
  std::vector<GradientBucket> buckets_;
  std::vector<double> bucket_seconds_;
  perf::Track* track_ = nullptr;
  std::vector<std::array<std::int32_t, 3>> labels_;  // [bucket][Work]
  std::uint64_t step_ = 0;
  // Numbers of orders continue from step to step.
  std::uint32_t first_ = 0;          // of this step
  std::uint32_t ordered_ = 0;        // one past the last
  std::vector<Order> orders_;        // of this step
  std::vector<std::uint32_t> last_;  // [bucket]: one past its last order
  float vote_ = 0, agreed_ = 0, weight_ = 1;

  std::atomic<std::uint32_t> released_{0};  // orders that may be carried out
  std::atomic<std::uint32_t> done_{0};      // orders that are carried out
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace trireme::parallel
