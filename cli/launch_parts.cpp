// Hidden commands that `trireme launch` starts: the runner beside each task, the guard beside the launcher and, for
// other hosts, the probe, the agent there and the relay to it.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/greeting.hpp"
#include "trireme/cluster/host_agent.hpp"
#include "trireme/cluster/host_relay.hpp"
#include "trireme/cluster/launch_hosts.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cli {
namespace {

std::string launcher_address() {
  if (!cluster::is_launched()) bad_input("only `trireme launch` can start this command");
  return cluster::environment_variable(cluster::kLaunchVariable);
}

CLI::App* add_hidden(CLI::App& parent, const char* name, const char* description) {
  return parent.add_subcommand(name, description)->group("");
}

Command add_launch_task(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-task", "Runs one task of a launch");
  struct Options {
    int task = -1, first_task = -1;
    std::string folder;
  };
  auto options = std::make_shared<Options>();
  app->add_option("--task", options->task, "Index of the task");
  app->add_option("--first-task", options->first_task, "Index of rank 0's task; the others follow");
  app->add_option("--folder", options->folder, "Working folder, if it exists");
  return {app, [options] {
            [[maybe_unused]] const int stays = options->folder.empty() ? 0 : chdir(options->folder.c_str());
            const int task = options->task >= 0 ? options->task : options->first_task + comm::launch_place().rank;
            cluster::run_task(launcher_address(), task);
            return 0;
          }};
}

Command add_launch_guard(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-guard", "Ends what a killed launch left behind");
  struct Options {
    std::string job_id, folder;
  };
  auto options = std::make_shared<Options>();
  app->add_option("job_id", options->job_id)->required();
  app->add_option("folder", options->folder)->required();
  return {app, [options] {
            cluster::run_guard(options->job_id, options->folder);
            return 0;
          }};
}

// As written by cluster::add_port_options().
void add_port_options(CLI::App& app, cluster::PortsWanted& ports) {
  app.add_option("--workers", ports.tasks.workers);
  app.add_option("--ps", ports.tasks.servers);
  app.add_option("--worker-port", ports.first_worker);
  app.add_option("--ps-port", ports.first_server);
}

Command add_launch_probe(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-probe", "Reports what a launch needs to know about this host");
  auto ports = std::make_shared<cluster::PortsWanted>();
  add_port_options(*app, *ports);
  return {app, [ports] {
            cluster::HostFacts facts = cluster::read_host_facts(*ports);
            facts.hears_launcher = cluster::hears_launcher();
            fmt::print("{}{}\n", cluster::kHostGreeting, nlohmann::json(facts).dump());
            return 0;
          }};
}

Command add_launch_host(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-host", "Looks after the tasks of a launch on this host");
  auto options = std::make_shared<cluster::HostAgentOptions>();
  app->add_option("--tasks", options->tasks)->delimiter(',')->required();
  add_port_options(*app, options->ports);
  app->add_option("--folder", options->folder);
  app->add_option("--address", options->address);
  return {app, [options] {
            options->program = cluster::this_binary();
            cluster::run_host_agent(*options);
            return 0;
          }};
}

Command add_launch_relay(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-relay", "Connects a launch to another host");
  auto command = std::make_shared<std::vector<std::string>>();
  app->add_option("command", *command, "After --: what runs a command on the other host")->required();
  return {app, [command] { return cluster::run_host_relay(*command, launcher_address()); }};
}

// Wraps what an MPI launcher starts on another host, which would be orphaned after the job.
Command add_launch_daemon(CLI::App& parent) {
  CLI::App* app = add_hidden(parent, "launch-daemon", "Runs a part of a launch for as long as the launch runs");
  auto command = std::make_shared<std::vector<std::string>>();
  app->add_option("command", *command, "After --")->required();
  return {app, [command]() -> int { cluster::become_part_of_job(launcher_address(), *command); }};
}

}  // namespace

std::vector<Command> add_launch_parts(CLI::App& parent) {
  return {add_launch_task(parent), add_launch_guard(parent), add_launch_probe(parent),
          add_launch_host(parent), add_launch_relay(parent), add_launch_daemon(parent)};
}

}  // namespace trireme::cli
