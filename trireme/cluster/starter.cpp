#include "trireme/cluster/starter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"

namespace trireme::cluster {
namespace {

// Debian installs several MPIs side by side and gives each launcher a name of its own; the plain name may be another's.
// The name, not the path: mpirun draws conclusions from being called by a path.
std::string find_mpirun() {
  for (const char* name : {"mpirun.openmpi", "mpirun"}) {
    if (!find_program(name).empty()) return name;
  }
  fail(ErrorKind::unavailable,
       "workers that talk MPI are started by mpirun, which is not in PATH; install the package openmpi-bin, or start "
       "plain processes with --starter process");
}

// UCX's segments lie in the folder that is removed with the job.
std::map<std::string, std::string> shared_memory_environment(const std::string& folder) {
  return {{"UCX_POSIX_DIR", folder}};
}

// Settings go by the environment, not by options: an MPI launcher that does not know one takes no offence.
std::map<std::string, std::string> mpi_environment(const std::string& folder) {
  std::map<std::string, std::string> environment{
      // Processors are given out by us, and so is the refusal of too many workers.
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      // This machine alone, inside of a Slurm allocation too; nothing listens on other networks.
      {"OMPI_MCA_plm", "isolated"},
      {"OMPI_MCA_ras", "^slurm,gridengine"},
      {"OMPI_MCA_oob_tcp_if_include", "lo"},
      {"OMPI_MCA_btl_tcp_if_include", "lo"},
      // All files in the folder that is removed with the job.
      {"OMPI_MCA_orte_tmpdir_base", folder},
      {"OMPI_MCA_btl_vader_backing_directory", folder},
      {"OMPI_MCA_osc_sm_backing_directory", folder},
      {"OMPI_MCA_osc_rdma_backing_directory", folder},
  };
  environment.merge(shared_memory_environment(folder));
  if (geteuid() == 0) {  // it asks twice whether this is meant
    environment.emplace("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.emplace("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return environment;
}

// By which an MPI launcher that has started us, as its only process, would make mpirun a part of its own job.
std::vector<std::string> variables_of_another_job() {
  return {"OMPI_UNIVERSE_SIZE", "OMPI_MCA_ess", "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI"};
}

}  // namespace

Starter process_starter(const std::string& program) {
  return [program](const Job& job, const std::string& folder) {
    std::vector<StartCommand> commands;
    for (int task = 0; task < static_cast<int>(job.tasks.size()); ++task) {
      commands.push_back({.name = fmt::format("the runner of {}", job.name(task)),
                          .command = {program, "launch-task", "--task", std::to_string(task)},
                          .environment = shared_memory_environment(folder),
                          .dropped_variables = {},
                          .tasks = {task}});
    }
    return commands;
  };
}

Starter mpi_starter(const std::string& program) {
  return [program, mpirun = find_mpirun()](const Job& job, const std::string& folder) {
    std::vector<int> tasks(job.tasks.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    return std::vector<StartCommand>{
        {.name = "mpirun",
         .command = {mpirun, "-np", std::to_string(tasks.size()), program, "launch-task", "--first-task", "0"},
         .environment = mpi_environment(folder),
         .dropped_variables = variables_of_another_job(),
         .tasks = tasks}};
  };
}

}  // namespace trireme::cluster
