#include "trireme/ps/job_member.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "trireme/cluster/environment.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/ps/server.hpp"

namespace trireme::ps {
namespace {

// What others may ask of a server while it runs.
class Reachable {
 public:
  Reachable(comm::ClusterWorld& world, Server& server) : world_(world) {
    world_.set_statistics([&server] { return server.statistics(); });
    world_.set_shutdown([&server] { server.stop(); });
  }
  ~Reachable() {
    world_.set_statistics({});
    world_.set_shutdown({});
  }
  Reachable(const Reachable&) = delete;
  Reachable& operator=(const Reachable&) = delete;

 private:
  comm::ClusterWorld& world_;
};

}  // namespace

JobMember::JobMember()
    : JobMember(cluster::place_in_launch(), [](const std::string& line) { fmt::print(stderr, "{}\n", line); }) {}

JobMember::JobMember(std::optional<comm::ClusterPlace> place, Log log)
    : place_(std::move(place)), log_(std::move(log)) {
  if (!place_) {
    world_ = comm::join_world();
    return;
  }
  cluster_ = comm::join_cluster(*place_, log_);
  workers_ = cluster_->data().split(is_server() ? -1 : 0, place_->rank());
}

JobMember::~JobMember() = default;

void JobMember::serve(int threads, perf::Recorder* recorder) {
  const auto workers = static_cast<int>(place_->spec.workers.size());
  log_(fmt::format("{} serves {} worker{} at {}, over {}", to_string(place_->place), workers, workers == 1 ? "" : "s",
                   place_->spec.address_of(place_->place), cluster_->data().transport()));
  Server server(cluster_->data(), workers,
                {.threads = perf::plan_threads(threads, 1, false).intra_threads,
                 .start_thread = {},
                 .log = log_,
                 .recorder = recorder});
  const Reachable reachable(*cluster_, server);
  server.run();
}

comm::Communicator* JobMember::with_servers() {
  return place_ && !place_->spec.servers.empty() ? &cluster_->data() : nullptr;
}

std::unique_ptr<train::Replicas> JobMember::make_replicas(WorkerOptions options, train::ReplicaOptions replicas) {
  if (comm::Communicator* all = with_servers(); all != nullptr) {
    auto sync = std::make_unique<WorkerSync>(*all, workers().size(), std::move(options));
    return std::make_unique<train::Replicas>(workers(), std::move(sync), std::move(replicas));
  }
  return std::make_unique<train::Replicas>(workers(), std::move(replicas));
}

void JobMember::leave() {
  workers_.reset();
  if (cluster_) cluster_->leave();
  if (world_) world_->leave();
}

}  // namespace trireme::ps
