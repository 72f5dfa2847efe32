#include "trireme/cluster/mpirun.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <map>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

using Environment = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

// Debian installs several MPIs with distinct launcher names; the plain name may be another's. Returns the name, not the
// path, because mpirun behaves differently when called by path.
std::string find_mpirun() {
  for (const char* name : {"mpirun.openmpi", "mpirun"}) {
    if (!find_program(name).empty()) return name;
  }
  fail(ErrorKind::unavailable,
       "workers that use MPI are started by mpirun, which is not in PATH; install the package openmpi-bin, or start "
       "plain processes with --starter process");
}

// Settings are environment variables, not options: a launcher that does not know one ignores it.
Environment mpi_environment(const std::string& folder) {
  Environment environment{
      // We assign processors and refuse too many workers.
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      // We place tasks, also in a Slurm allocation.
      {"OMPI_MCA_ras", "^slurm,gridengine"},
      // Its files go to the folder that is removed with the job; runners handle those of the ranks.
      {"OMPI_MCA_orte_tmpdir_base", folder},
  };
  if (geteuid() == 0) {  // it asks twice for confirmation
    environment.emplace("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.emplace("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return environment;
}

// Only this machine; nothing listens on other networks.
Environment local_environment(const std::string& folder) {
  Environment environment = mpi_environment(folder);
  environment.merge(Environment{
      {"OMPI_MCA_plm", "isolated"}, {"OMPI_MCA_oob_tcp_if_include", "lo"}, {"OMPI_MCA_btl_tcp_if_include", "lo"}});
  return environment;
}

// A remote daemon carries the job's id and writes into the job's folder there: it ends with the agent whatever happens
// here, and cannot start after the agent has gone. Our own settings are not for it.
std::string daemon_command(const RunnerCommand& runner) {
  std::vector<std::string> words{"env", fmt::format("{}={}", kLaunchVariable, runner.job_id)};
  for (const auto& [name, value] : mpi_environment(job_folder(runner.job_id))) words.push_back(name + "=" + value);
  words.insert(words.end(), {shell_quoted(runner.program), "launch-daemon", "--", "orted"});
  return fmt::format("{}", fmt::join(words, " "));
}

// mpirun takes the remote shell as one text, in which these characters are special.
void check_is_one_word(const char* option, const std::string& value) {
  if (value.find_first_of(" \t:") == std::string::npos) return;
  bad_input(
      "{} '{}': mpirun, which starts tasks that use MPI, does not accept spaces or colons here; give another path, or "
      "set it in ssh's own configuration",
      option, value);
}

Environment ssh_environment(const std::string& folder, const Words& ssh, const Words& networks,
                            const RunnerCommand& runner) {
  Environment environment = mpi_environment(folder);
  environment.merge(Environment{{"OMPI_MCA_plm", "rsh"},
                                {"OMPI_MCA_plm_rsh_agent", fmt::format("{}", fmt::join(ssh, " "))},
                                {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},  // hosts may not reach each other by ssh
                                {"OMPI_MCA_plm_rsh_pass_environ_mca_params", "0"},
                                {"OMPI_MCA_orte_launch_agent", daemon_command(runner)}});
  if (!networks.empty()) {
    environment.emplace("OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(networks, ",")));
  }
  return environment;
}

// With these, an MPI launcher that started us as its only process would make mpirun part of its own job.
Words variables_of_another_job() {
  return {"OMPI_UNIVERSE_SIZE", "OMPI_MCA_ess", "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI"};
}

std::vector<int> all_tasks(const JobDescription& job) {
  std::vector<int> tasks(job.tasks.size());
  std::iota(tasks.begin(), tasks.end(), 0);
  return tasks;
}

// One part per run of tasks on a host: ranks are assigned in the order of the parts.
Words with_parts(const std::string& mpirun, const JobDescription& job, const Words& runner) {
  Words words{mpirun};
  for (std::size_t first = 0; first < job.tasks.size();) {
    std::size_t end = first;
    while (end < job.tasks.size() && job.tasks[end].host == job.tasks[first].host) ++end;
    if (first > 0) words.emplace_back(":");
    const std::string count = std::to_string(end - first);
    words.insert(words.end(), {"-np", count, "--host", job.tasks[first].host + ":" + count, "-wdir", "/"});
    words.insert(words.end(), runner.begin(), runner.end());
    first = end;
  }
  return words;
}

}  // namespace

Starter mpi_starter(const std::string& program) {
  return [program, mpirun = find_mpirun()](const JobDescription& job, const std::string& folder) {
    const auto tasks = all_tasks(job);
    return std::vector<StartCommand>{
        {.name = "mpirun",
         .command = {mpirun, "-np", std::to_string(tasks.size()), program, "launch-task", "--first-task", "0"},
         .environment = local_environment(folder),
         .dropped_variables = variables_of_another_job(),
         .tasks = tasks}};
  };
}

RunnerStarter mpirun_runners(const SshOptions& ssh, const Words& networks) {
  check_is_one_word("--ssh-key", ssh.key);
  check_is_one_word("--ssh-config", ssh.config);
  check_is_one_word("--ssh-user", ssh.user);
  return [mpirun = find_mpirun(), ssh = ssh_words(ssh), networks](const JobDescription& job, const std::string& folder,
                                                                  const RunnerCommand& runner) {
    return StartCommand{.name = "mpirun",
                        .command = with_parts(mpirun, job, runner.words),
                        .environment = ssh_environment(folder, ssh, networks, runner),
                        .dropped_variables = variables_of_another_job(),
                        .tasks = all_tasks(job)};
  };
}

}  // namespace trireme::cluster
