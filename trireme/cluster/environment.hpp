// Where a process finds itself: started by hand, by `trireme launch`, by mpirun or by srun, and as which rank of how
// many; and the variables by which the launcher tells its tasks. Asked by commands that can work as one of several.
#pragma once

#include <functional>
#include <string>

namespace trireme::cluster {

// Set by the launcher for every process of a job: the address of its socket, which is also the mark by which all
// processes of the job are found when it has to end.
inline constexpr const char* kLaunchVariable = "TRIREME_LAUNCH";
inline constexpr const char* kTaskRoleVariable = "TRIREME_TASK_ROLE";
inline constexpr const char* kTaskIndexVariable = "TRIREME_TASK_INDEX";
inline constexpr const char* kTaskCountVariable = "TRIREME_TASK_COUNT";  // tasks of the same role
// "terminal": this task's progress is shown on a terminal, though its own stderr is none.
inline constexpr const char* kProgressVariable = "TRIREME_PROGRESS";

enum class LauncherKind { none, trireme, mpirun, srun };
std::string to_string(LauncherKind kind);

struct LaunchEnvironment {
  LauncherKind launcher = LauncherKind::none;
  bool mpi = false;  // MPI_Init will find the others
  int rank = 0, size = 1;
};

using Lookup = std::function<const char*(const char*)>;  // nullptr where a variable is not set
LaunchEnvironment detect_environment(const Lookup& lookup);
LaunchEnvironment detect_environment();  // of this process

// Whether a progress bar written to stderr will be seen on a terminal.
bool shows_progress();

}  // namespace trireme::cluster
