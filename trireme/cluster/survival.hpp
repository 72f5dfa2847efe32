// Whether a job goes on when tasks of it have failed. Asked by the Supervisor.
#pragma once

#include <vector>

#include "trireme/cluster/failure_log.hpp"
#include "trireme/cluster/job.hpp"

namespace trireme::cluster {

// It does where workers alone have failed that the others can do without, by nothing that they share, and where a
// worker is left beside these and the ones that were lost before.
bool survives(const Job& job, const std::vector<Failure>& failures, const std::vector<int>& lost);

}  // namespace trireme::cluster
