// Data-parallel training for a loop of one's own: several processes run the same loop on different samples, and a step
// of one becomes a step of all. The whole change to a program for one process (examples/distributed.cpp):
//
//   const auto world = comm::join_world();                 // who we are: mpirun, srun and `trireme launch` say
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
  // Of replicas that average gradients by all-reduce.
  comm::AllReduceOptions all_reduce = {};
  bool overlap = true;  // false: nothing is reduced before backward has ended; shows what overlapping buys
  // Called first on the communication thread: lets it run where it disturbs least.
  std::function<void()> start_thread = {};
  perf::Recorder* recorder = nullptr;  // gets a span for each bucket; none: nobody traces
  // Batch norm takes its statistics over the samples of all replicas, as one process would. Otherwise each replica
  // normalises with those of its own samples, which is faster, and running statistics are each replica's own.
  bool sync_batch_norm = false;
  // How long a step waits for other replicas before that is an error; 0: the communicator's time.
  std::chrono::duration<double> timeout{0};
};

class Replicas {
 public:
  // Collective. The communicator stays the caller's: this one works on duplicates. Gradients are averaged by
  // all-reduce,
  explicit Replicas(comm::Communicator& communicator, ReplicaOptions options = {});
  // or the replicas agree in another way.
  Replicas(comm::Communicator& communicator, std::unique_ptr<GradientSync> sync, ReplicaOptions options = {});
  ~Replicas();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  // Sets what a session of replicas of this graph needs.
  void configure(const Graph& graph, SessionOptions& options);
  // Collective: checks that all replicas have the same program, gives them the values and the optimizer state of rank
  // 0, and lets the gradients of the step be exchanged from now on.
  void attach(Session& session, Executable& step);
  void attach(Session& session, BatchSplit& step);
  // Lets gradients be exchanged after other options say what else becomes of them, or again after they were not.
  void exchange_gradients(Executable& step, const GradientOptions& options);
  void exchange_gradients(BatchSplit& step, const GradientOptions& options);
  // Collective: the same values for all, those of rank 0 (with the optimizer state) or of the servers. After replicas
  // went their own ways.
  void restore_values(Session& session);
  // Collective: Error(failed) that names rank and variable if trained values are not the same everywhere to the bit.
  void check_agreement(Session& session);

  // The replicas between steps are those of this communicator from now on: some of the others were lost.
  // Collective.
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
