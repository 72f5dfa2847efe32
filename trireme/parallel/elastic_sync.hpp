// Agreement by all-reduce among replicas that may be lost during a step: those that are left finish the same step from
// the gradients they have. A separate thread reduces each bucket once backward has completed it, as in AllReduceSync,
// but nothing is applied before the vote that follows the last bucket: it commits the step.
//
// Why that is safe: a replica votes when all its buckets are summed. So if the vote of a step is complete anywhere,
// every replica has all means of that step, and one that is behind lacks only the vote's value. If it is complete
// nowhere, nobody has applied anything: those left restore their gradients from copies and sum again. One exchange of
// what each has committed, in a communicator of those left, tells which it is. docs/elastic.md has the whole story.
//
// Made by Worker; called by Executable through GradientExchange.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/comm/team.hpp"
#include "trireme/parallel/gradient_sync.hpp"
#include "trireme/parallel/replicas.hpp"
#include "trireme/perf/recorder.hpp"

namespace trireme::parallel {

class ElasticSync : public GradientSync {
 public:
  // Collective. `loss` is asked for this replica's loss when the last bucket of a step is complete. The source must
  // outlive this.
  ElasticSync(comm::Communicator& everybody, comm::TeamSource& teams, ReplicaOptions options,
              std::function<double()> loss);
  ~ElasticSync() override;  // at any time

  void configure(const Graph&, SessionOptions&) override {}
  void open(std::vector<GradientBucket> buckets, std::uint64_t step) override;

  Exchange kind() const override { return Exchange::reduce; }
  void begin_step(std::uint64_t step) override;
  void start(int bucket) override;
  bool done(int bucket) override;  // the step is committed
  void wait(int bucket) override;

  void set_vote(float value) override { vote_ = value; }
  float agreed() const override { return committed_.vote; }
  void set_weight(float weight) override { weight_ = weight; }

  std::span<const GradientBucket> buckets() const override { return buckets_; }
  std::span<const double> communication_seconds() const override { return bucket_seconds_; }
  const comm::AllReducer& reducer() const { return *reducer_; }  // before the first step

  // Between steps: who has contributed to the last one, and the mean of their losses.
  const comm::Team& committed_by() const { return committed_.by; }
  double mean_loss() const { return committed_.loss / static_cast<double>(committed_.by.ranks.size()); }
  // Others may be late for the next step: one of them does something else meanwhile.
  void expect_delay() { expects_delay_ = true; }

 private:
  struct Commit {  // of the last step
    comm::Team by;
    float vote = 0, loss = 0;  // sums
  };

  void work() noexcept;
  bool wait_for_work();
  void reduce_next();
  Commit vote();
  void commit(const Commit& step);

  void follow(std::exception_ptr problem);
  bool leave_for_newer_team(const std::exception_ptr& problem);
  void agree();
  void take_back();
  void make_reducers();
  bool is_outdated() const { return teams_.newest().epoch > team_.epoch; }
  std::span<std::byte> copy_of(int bucket, std::size_t part);

  comm::TeamSource& teams_;
  ReplicaOptions options_;
  std::function<double()> loss_;
  std::unique_ptr<comm::Communicator> everybody_;
  std::vector<GradientBucket> buckets_;
  std::vector<double> bucket_seconds_;
  perf::Track* track_ = nullptr;
  std::vector<std::int32_t> labels_;     // [bucket]
  AlignedMemory copies_;                 // of this step's gradients
  std::vector<std::int64_t> copies_at_;  // [bucket]

  // What follows is used by the thread alone, in open() before there is one; the communicator also under the mutex.
  comm::Team team_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<comm::AllReducer> reducer_, vote_reducer_;
  struct Epoch {
    std::unique_ptr<comm::Communicator> communicator;
    std::unique_ptr<comm::AllReducer> reducer, vote_reducer;
  };
  std::vector<Epoch> held_;  // old ones whose memory a peer that has stopped still keeps
  int copied_ = 0;           // buckets of the step
  int carried_ = 0;          // buckets that this team has summed
  comm::Team voted_with_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t step_ = 0;                            // in progress, as others count it
  int ordered_ = 0, released_ = 0;                    // buckets of the step: complete, and may be carried out
  std::atomic<std::uint64_t> commits_{0}, begun_{0};  // steps
  Commit committed_;
  float vote_ = 0, own_loss_ = 0, weight_ = 1;
  bool expects_delay_ = false, has_delay_ = false;
  std::atomic<bool> stopping_{false}, failed_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace trireme::parallel
