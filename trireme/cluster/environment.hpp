// Environment variables of a launch's tasks, set by the launcher. For ranks under MPI see comm::launch_place().
#pragma once

#include <optional>
#include <string>

#include "trireme/comm/world.hpp"

namespace trireme::cluster {

// In every process of a job: the address of the supervisor's socket, also the id for finding all processes of the job.
inline constexpr const char* kLaunchVariable = "TRIREME_LAUNCH";
inline constexpr const char* kTaskRoleVariable = "TRIREME_TASK_ROLE";
inline constexpr const char* kTaskIndexVariable = "TRIREME_TASK_INDEX";
inline constexpr const char* kTaskCountVariable = "TRIREME_TASK_COUNT";  // tasks of the same role
// A comm::ClusterSpec as JSON, and the secret shared by the tasks. Not set if they connect over MPI.
inline constexpr const char* kClusterVariable = "TRIREME_CLUSTER";
inline constexpr const char* kJobSecretVariable = "TRIREME_JOB_SECRET";
// "launcher": heed SIGINT and SIGTERM only from the parent, because Slurm sends them to all processes of a job.
inline constexpr const char* kEndRequestsVariable = "TRIREME_END_REQUESTS";
inline constexpr const char* kFromLauncher = "launcher";
// A task's connection to its runner: descriptor and, as a safeguard, the socket's inode: "5:123456".
inline constexpr const char* kLinkVariable = "TRIREME_TASK_LINK";
// "launcher": the task's record is to be sent to the launcher, which writes it.
inline constexpr const char* kRecordVariable = "TRIREME_RECORD";
// "terminal": this task's progress appears on a terminal, though its own stderr is not one.
inline constexpr const char* kProgressVariable = "TRIREME_PROGRESS";

std::string environment_variable(const char* name);  // empty if not set

bool is_launched();  // by `trireme launch`
// This task of a launch that connects over the network, with the secret; nullopt over MPI or without a launch.
std::optional<comm::ClusterPlace> place_in_launch();
bool obeys_launcher_alone();

// What started this process as one of several: "trireme launch", "Open MPI", "Slurm", ...; empty: nothing.
std::string surrounding_launcher();

bool shows_progress();  // on a terminal

}  // namespace trireme::cluster
