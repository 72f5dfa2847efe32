// How OpenMP's threads wait for each other.
#pragma once

#include <memory>

namespace trireme::perf {

// Threads of OpenMP spin for milliseconds at the end of every operation, the fastest way to wait if the cores are free.
// If other threads want these cores, a spinning thread takes the time of the thread it waits for. As long as the
// result lives, a thread watches whether threads of this process wait for a processor, and lets those of OpenMP sleep
// at once while some do. Null if the user has chosen (OMP_WAIT_POLICY, GOMP_SPINCOUNT) or Linux does not tell.
// All callers in a process share one watch.
[[nodiscard]] std::shared_ptr<void> limit_spinning_under_load();

}  // namespace trireme::perf
