// How the replicas of a pipeline's stage agree: by all-reduce among themselves. After a step all stages exchange what
// concerns the whole: the loss, known to the last stage, and votes.
#pragma once

#include "trireme/parallel/all_reduce_sync.hpp"
#include "trireme/parallel/peer_watch.hpp"

namespace trireme::parallel {

class PipelineSync final : public AllReduceSync {
 public:
  // Collective over the workers. Only this object may use the first communicator, of the stage's replicas, meanwhile.
  // Without a watch, waits end after the timeout though other stages work.
  PipelineSync(comm::Communicator& stage, comm::Communicator& workers, const ReplicaOptions& options, PeerWatch* watch);

  void wait(int bucket) override {
    const PeerWatch::Waiting waiting(watch_);
    AllReduceSync::wait(bucket);
  }
  void set_vote(float value) override { vote_ = value; }
  float agreed() const override { return agreed_; }

  struct Outcome {  // of a step's images in one worker of the last stage
    double loss = 0, accuracy = 0;
    bool is_known = false;
  };
  // Collective, after each step: the mean over the workers that know it.
  Outcome share(const Outcome& own);

 private:
  std::unique_ptr<comm::Communicator> workers_;
  PeerWatch* watch_;
  float vote_ = 0, agreed_ = 0;
};

}  // namespace trireme::parallel
