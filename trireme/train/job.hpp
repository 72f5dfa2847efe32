// This process as a member of a job: alone, one of several workers, or a parameter server. The launcher (`trireme
// launch`, mpirun, srun) or user-given addresses name the others. Made once in main(), by `trireme bench` and `train`
// and by user programs (examples/mnist.cpp):
//
//   train::Job job;
//   if (job.is_server()) {
//     job.serve();  // until the workers have left
//   } else {
//     train::Trainer trainer(job, options);
//     trainer.run();
//   }
//   job.leave();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/job_size.hpp"

namespace trireme::comm {
class TeamSource;
class World;
struct ClusterPlace;
}  // namespace trireme::comm
namespace trireme::perf {
class Recorder;
}

namespace trireme::train {

// The members that train together, for Worker, Trainer and Benchmark. The communicators must outlive its users.
struct ProcessGroup {
  comm::Communicator& workers;
  comm::Communicator* with_servers = nullptr;  // worker ranks first, then the servers; null: no servers
  comm::TeamSource* teams = nullptr;           // who is left if workers are lost; needed by elastic training
};

class Job {
 public:
  using Log = std::function<void(const std::string& line)>;

  Job();  // as the launcher says; returns once all members have met
  // As the tasks of a cluster; without a place, as MPI ranks, or alone. The log receives whole lines, from any thread.
  Job(const std::optional<comm::ClusterPlace>& place, Log log);
  ~Job();  // without leave(), the others see this member as lost

  comm::JobSize size();
  bool is_server() const;
  // Runs a server; threads 0: one per core this process may use. Throws errors. The recorder gets spans of updates.
  void serve(int threads = 0, perf::Recorder* recorder = nullptr);

  comm::Communicator& workers();       // for workers: the workers alone
  comm::Communicator* with_servers();  // for workers: with the servers; null: none
  // An elastic one follows the launcher's word on lost workers: Error(bad_input) without `trireme launch`.
  ProcessGroup group(bool is_elastic = false);
  // All members.
  comm::Communicator& everybody() { return with_servers() != nullptr ? *with_servers() : workers(); }
  // Collective: leaves in good order, as the last call on success. Destroy everything made from this job first.
  void leave();

 private:
  std::unique_ptr<const comm::ClusterPlace> place_;  // null: MPI ranks, or alone
  Log log_;
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<comm::Communicator> workers_;  // of a cluster
  std::unique_ptr<comm::TeamSource> teams_;
};

}  // namespace trireme::train
