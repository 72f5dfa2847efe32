#include "trireme/cluster/slurm.hpp"

#include <fmt/ranges.h>

#include <numeric>
#include <regex>
#include <set>
#include <sstream>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

using Words = std::vector<std::string>;

// "n[0-3]" has more forms than we want to parse.
Words expand_nodes(const std::string& list) {
  std::istringstream lines(command_output({"scontrol", "show", "hostnames", list}));
  Words nodes;
  for (std::string line; std::getline(lines, line);) nodes.push_back(line);
  return nodes;
}

bool are_tasks_asked_for() {
  return !environment_variable("SLURM_NTASKS").empty() || !environment_variable("SLURM_NTASKS_PER_NODE").empty();
}

// Runs next to other steps on all of the job's processors, which we divide ourselves. We handle failures.
Words step_words() {
  if (find_program("srun").empty()) {
    fail(ErrorKind::unavailable, "the nodes of an allocation are reached by srun, which is not in PATH");
  }
  return {"srun", "--quiet", "--overlap", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit=0"};
}

std::string explain(int, const std::string& words) {
  return words.starts_with("srun: ") ? fmt::format("srun cannot reach it: {}", words) : "";
}

// Unbuffered, since the data has no lines. Drops variables about this process: job id and user's connection.
Words command_on_node(const std::string& node, const Words& command) {
  Words words = step_words();
  words.insert(words.end(), {"--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--nodelist=" + node, "--unbuffered",
                             "--mpi=none", "env", "-u", kLaunchVariable, "-u", "SSH_CONNECTION"});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace

SlurmAllocation read_slurm_allocation() {
  const std::string list = environment_variable("SLURM_JOB_NODELIST");
  if (list.empty()) {
    bad_input("--slurm: not inside a Slurm allocation; get one with salloc or sbatch, or add --submit to request one");
  }
  const Words names = expand_nodes(list);
  const std::string tasks = are_tasks_asked_for() ? environment_variable("SLURM_TASKS_PER_NODE") : "";
  std::vector<int> counts = parse_slurm_counts(tasks);
  if (!tasks.empty() && counts.size() != names.size()) {
    fail(ErrorKind::failed, "Slurm lists the nodes {} ({}), which does not match its tasks per node {}", list,
         names.size(), tasks);
  }
  counts.resize(names.size(), 1);
  SlurmAllocation allocation{.job = environment_variable("SLURM_JOB_ID"), .nodes = {}};
  for (std::size_t i = 0; i < names.size(); ++i) allocation.nodes.push_back({.name = names[i], .workers = counts[i]});
  return allocation;
}

std::vector<int> parse_slurm_counts(const std::string& text) {
  static const std::regex kItem(R"((\d{1,6})(?:\(x(\d{1,6})\))?)");
  std::vector<int> counts;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    std::smatch parts;
    if (!std::regex_match(item, parts, kItem)) return {};
    const std::size_t times = parts[2].matched ? std::stoul(parts[2]) : 1;
    counts.insert(counts.end(), times, std::stoi(parts[1]));
  }
  return counts;
}

HostReach srun_reach() { return {.name = "srun", .command = command_on_node, .failure = explain}; }

RunnerStarter srun_runners(const std::string& plugin, const Words& networks) {
  return [plugin, networks](const JobDescription& job, const std::string&, const RunnerCommand& runner) {
    Words nodes;
    for (const Task& task : job.tasks) nodes.push_back(task.host);
    Words words = step_words();
    words.insert(words.end(),
                 {"--mpi=" + plugin, fmt::format("--nodes={}", std::set(nodes.begin(), nodes.end()).size()),
                  fmt::format("--ntasks={}", nodes.size()), "--overcommit", "--distribution=arbitrary",
                  fmt::format("--nodelist={}", fmt::join(nodes, ",")), "--input=none", "--chdir=/"});
    words.insert(words.end(), runner.words.begin(), runner.words.end());
    StartCommand start{.name = "srun",
                       .command = words,
                       .dropped_variables = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK"},
                       .tasks = std::vector<int>(nodes.size())};
    std::iota(start.tasks.begin(), start.tasks.end(), 0);
    // The default fence, mixed, lets a rank leave MPI_Init before others are ready, which sometimes crashes them.
    start.environment.emplace("SLURM_PMIX_FENCE", "tree");
    if (!networks.empty()) {
      start.environment.emplace("OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(networks, ",")));
    }
    return start;
  };
}

}  // namespace trireme::cluster
