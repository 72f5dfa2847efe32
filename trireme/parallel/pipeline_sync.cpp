#include "trireme/parallel/pipeline_sync.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::parallel {

PipelineSync::PipelineSync(comm::Communicator& stage, comm::Communicator& workers, const ReplicaOptions& options,
                           PeerWatch* watch)
    : AllReduceSync(stage, options), workers_(workers.split(0, workers.rank())), watch_(watch) {
  workers_->set_timeout(options.timeout);
  workers_->set_context("the loss of a step");
  if (watch_ == nullptr) return;
  stage.set_judge(watch_->judge());
  workers_->set_judge(watch_->judge());
}

PipelineSync::Outcome PipelineSync::share(const Outcome& own) {
  struct Report {
    double loss, accuracy;
    float vote;
    std::int32_t count;
  };
  const PeerWatch::Waiting waiting(watch_);
  const Report mine{own.loss, own.accuracy, vote_, own.is_known ? 1 : 0};
  Outcome mean{.is_known = true};
  int count = 0;
  agreed_ = 0;
  for (const Report& each : comm::all_gather_value(*workers_, mine)) {
    agreed_ += each.vote;
    if (each.count == 0) continue;
    mean.loss += each.loss;
    mean.accuracy += each.accuracy;
    ++count;
  }
  if (count == 0) fail(ErrorKind::failed, "no stage of the pipeline knows the loss");
  mean.loss /= count;
  mean.accuracy /= count;
  return mean;
}

}  // namespace trireme::parallel
