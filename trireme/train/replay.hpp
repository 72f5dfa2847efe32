// Repeats an elastic run from its membership log: every worker is a thread of this process and leaves before the step
// that it did not contribute to. Used by `trireme train --replay`.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "trireme/train/job.hpp"
#include "trireme/train/membership_log.hpp"
#include "trireme/train/training_config.hpp"

namespace trireme::train {

// Calls this on a thread for each worker, with its configuration and group; those who leave are unwound by an
// exception.
using ReplayWorker = std::function<void(const TrainingConfig&, const ProcessGroup&)>;

// Error(bad_input) names the first option that is not as in the run.
void replay(const TrainingConfig& config, const Membership& membership, const ReplayWorker& worker);

}  // namespace trireme::train
