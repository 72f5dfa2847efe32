// Data-parallel training for custom loops: several processes run the same loop on different samples, and each step is a
// common step. The changes to a single-process program (examples/distributed.cpp):
//
//   const auto world = comm::join_world();                 // as told by mpirun, srun or `trireme launch`
//   parallel::Replicas replicas(world->communicator());
//   replicas.configure(graph, session_options);            // before the session is made
//   Executable& step = session.prepare(fetches);
//   replicas.attach(session, step);                        // initial values from rank 0; gradients are averaged
//   … feed samples of rank replicas.rank() of replicas.size() …
//   world->leave();
//
// Gradients are means over the samples of all replicas, so N replicas of batch b train like one of batch N·b.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme {
enum class Exchange : std::uint8_t;
}

namespace trireme::parallel {

class GradientSync;

struct ReplicaOptions {
  comm::AllReduceOptions all_reduce = {};
  bool overlap = true;  // false: reduce only after backward; shows the benefit of overlap
  // Called first on the communication thread, to place it where it disturbs least.
  std::function<void()> start_thread = {};
  perf::Recorder* recorder = nullptr;  // gets a span per bucket; null: no tracing
  // Batch norm uses statistics over the samples of all replicas, as one process would. Otherwise each replica uses only
  // its own samples, which is faster, and keeps its own running statistics.
  bool sync_batch_norm = false;
  // Each replica has a part of the optimizer's state, updates that part of the variables, and sends it to the others.
  bool shard_optimizer = false;
  // How long a step waits for other replicas before it fails; 0: the communicator's timeout.
  std::chrono::duration<double> timeout{0};
};

class Replicas {
 public:
  // Collective. Works on duplicates of the communicator. Averages gradients by all-reduce,
  explicit Replicas(comm::Communicator& communicator, ReplicaOptions options = {});
  // or synchronizes as given.
  Replicas(comm::Communicator& communicator, std::unique_ptr<GradientSync> sync, ReplicaOptions options = {});
  ~Replicas();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  void configure(const Graph& graph, SessionOptions& options);
  // Collective: checks for equal programs, broadcasts rank 0's values and state, and exchanges gradients from now on.
  void attach(Session& session, Executable& step);
  void attach(Session& session, BatchSplit& step);
  // Starts exchanging gradients again, possibly with new options for their further use.
  void exchange_gradients(Executable& step, const GradientOptions& options);
  void exchange_gradients(BatchSplit& step, const GradientOptions& options);
  // Collective: gives diverged replicas the values of rank 0 (with the optimizer state) or of the servers.
  void restore_values(Session& session);
  // Collective: what is not trained, such as running statistics, becomes the mean over all replicas.
  void average_untrained(Session& session);
  // Collective: Error(failed) naming rank and variable if trained values are not bitwise equal everywhere.
  void check_agreement(Session& session);

  // Collective: continues, between steps, with the replicas of this communicator after others were lost.
  void set_communicator(comm::Communicator& communicator);

  GradientSync& sync() { return *sync_; }
  const GradientSync& sync() const { return *sync_; }

 private:
  class Statistics;

  void open(Session& session, Executable& step);
  template <typename Step>  // Executable or BatchSplit
  void set_exchange(Step& step, GradientOptions options) const;
  Exchange exchange() const;
  bool is_served() const;
  void check_same_program(Session& session, const Executable& step);
  void broadcast_values(Session& session);

  ReplicaOptions options_;
  std::unique_ptr<comm::Communicator> communicator_;       // between steps
  std::unique_ptr<comm::Communicator> sync_communicator_;  // the communication thread's, if it all-reduces
  std::unique_ptr<Statistics> statistics_;
  std::unique_ptr<GradientSync> sync_;
  bool attached_ = false;
};

}  // namespace trireme::parallel
