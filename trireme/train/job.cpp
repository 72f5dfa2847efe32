#include "trireme/train/job.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/launched_teams.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/ps/server.hpp"

namespace trireme::train {
Job::Job() : Job(cluster::place_in_launch(), [](const std::string& line) { fmt::print(stderr, "{}\n", line); }) {}

Job::Job(const std::optional<comm::ClusterPlace>& place, Log log)
    : place_(place ? std::make_unique<const comm::ClusterPlace>(*place) : nullptr), log_(std::move(log)) {
  if (!place_) {
    world_ = comm::join_world();
    return;
  }
  world_ = comm::join_world(*place_, log_);
  workers_ = world_->communicator().split(is_server() ? -1 : 0, place_->rank());
}

Job::~Job() = default;

bool Job::is_server() const { return place_ && place_->place.is_server(); }

void Job::serve(int threads, perf::Recorder* recorder) {
  const auto workers = static_cast<int>(place_->spec.workers.size());
  log_(fmt::format("{} serves {} worker{} at {}, over {}", to_string(place_->place), workers, workers == 1 ? "" : "s",
                   place_->spec.address_of(place_->place), world_->communicator().transport()));
  ps::Server server(world_->communicator(), workers,
                    {.threads = perf::plan_threads(threads, 1, false).intra_threads,
                     .start_thread = {},
                     .log = log_,
                     .recorder = recorder});
  server.run();
}

comm::Communicator& Job::workers() {
  if (is_server()) fail(ErrorKind::failed, "{} is not a worker: it must serve()", to_string(place_->place));
  return workers_ ? *workers_ : world_->communicator();
}

comm::Communicator* Job::with_servers() {
  return place_ && !place_->spec.servers.empty() ? &world_->communicator() : nullptr;
}

ProcessGroup Job::group(bool is_elastic) {
  if (is_elastic && workers().size() > 1 && !teams_) {
    teams_ = std::make_unique<cluster::LaunchedTeams>(workers().size());
  }
  return {workers(), with_servers(), teams_.get()};
}

comm::JobSize Job::size() { return place_ ? place_->spec.job_size() : comm::JobSize{.workers = workers().size()}; }

void Job::leave() {
  workers_.reset();
  world_->leave();
}

}  // namespace trireme::train
