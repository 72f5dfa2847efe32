// The variables by which a launch tells its tasks who they are, and what can be concluded from them. Set by the
// launcher; asked by the commands that it starts. Ranks under MPI are comm::launch_place()'s business.
#pragma once

#include <optional>
#include <string>

#include "trireme/comm/world.hpp"

namespace trireme::cluster {

// In every process of a job: the address of the supervisor's socket, which is also the id by which all processes of
// the job are found when it has to end.
inline constexpr const char* kLaunchVariable = "TRIREME_LAUNCH";
inline constexpr const char* kTaskRoleVariable = "TRIREME_TASK_ROLE";
inline constexpr const char* kTaskIndexVariable = "TRIREME_TASK_INDEX";
inline constexpr const char* kTaskCountVariable = "TRIREME_TASK_COUNT";  // tasks of the same role
// Where the tasks of the job meet over the network: a comm::ClusterSpec as JSON, and the secret by which they know each
// other. Not set where they meet over MPI.
inline constexpr const char* kClusterVariable = "TRIREME_CLUSTER";
inline constexpr const char* kJobSecretVariable = "TRIREME_JOB_SECRET";
// "launcher": requests to end (SIGINT, SIGTERM) count only when they come from the process that has started this one.
// Slurm sends them to every process of a job, also where the launcher decides what they mean.
inline constexpr const char* kEndRequestsVariable = "TRIREME_END_REQUESTS";
inline constexpr const char* kFromLauncher = "launcher";
// To a task's program: the descriptor of its connection to the runner beside it and, so that a descriptor of the same
// number that is something else is not mistaken for it, the socket's inode: "5:123456".
inline constexpr const char* kLinkVariable = "TRIREME_TASK_LINK";
// "terminal": this task's progress is shown on a terminal, though its own stderr is none.
inline constexpr const char* kProgressVariable = "TRIREME_PROGRESS";

std::string environment_variable(const char* name);  // empty: it is not set

bool is_launched();  // by `trireme launch`
// This task of a launch whose tasks meet over the network, with the secret; nothing: they meet over MPI, or there is no
// launch.
std::optional<comm::ClusterPlace> place_in_launch();
bool obeys_launcher_alone();

// Who has started this process as one of several: "trireme launch", "Open MPI", "Slurm", ...; empty: nobody.
std::string surrounding_launcher();

// Whether a progress bar written to stderr will be seen on a terminal.
bool shows_progress();

}  // namespace trireme::cluster
