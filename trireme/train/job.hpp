// This process as a member of a job: alone, a worker among others, or a parameter server. Who the others are is said by
// the launcher (`trireme launch`, mpirun, srun) or by addresses that the user gave. Made once in main(), by `trireme
// bench` and `train` and by programs of one's own (examples/mnist.cpp):
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
class World;
struct ClusterPlace;
}  // namespace trireme::comm
namespace trireme::perf {
class Recorder;
}

namespace trireme::train {

// Those who train together, as Worker, Trainer and Benchmark take them. The communicators outlive whoever is given
// this.
struct ProcessGroup {
  comm::Communicator& workers;
  comm::Communicator* with_servers = nullptr;  // the workers' ranks and then the servers, if there are any
};

class Job {
 public:
  using Log = std::function<void(const std::string& line)>;

  // Returns when all members have met: as the launcher has said, or
  Job();
  // as the tasks of a cluster; without a place, as the ranks of MPI, or alone. The log gets whole lines, from any
  // thread.
  Job(const std::optional<comm::ClusterPlace>& place, Log log);
  ~Job();  // without leave(), the others see this one as lost

  comm::JobSize size();
  bool is_server() const;
  // A server's part, with so many threads (0: one per core that this process may use). Errors are thrown. A recorder
  // gets the spans of its updates.
  void serve(int threads = 0, perf::Recorder* recorder = nullptr);

  // A worker's part. The workers alone:
  comm::Communicator& workers();
  // Workers and servers; nullptr: there are no servers.
  comm::Communicator* with_servers();
  ProcessGroup group() { return {workers(), with_servers()}; }
  // All members, whatever they are.
  comm::Communicator& everybody() { return with_servers() != nullptr ? *with_servers() : workers(); }
  // In good order, together with all others: the last call when all is well. What was made from this one is gone by
  // then.
  void leave();

 private:
  std::unique_ptr<const comm::ClusterPlace> place_;  // none: the ranks of MPI, or alone
  Log log_;
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<comm::Communicator> workers_;  // of a cluster
};

}  // namespace trireme::train
