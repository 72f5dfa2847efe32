// `trireme net`: measures how fast the tasks of a job can communicate over each of its transports.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/checks.hpp"
#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "cli/table_options.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/launch_plan.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/comm/network_file.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/net/network_run.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/models/model.hpp"
#include "trireme/report/terminal.hpp"
#include "trireme/train/same_options.hpp"

namespace trireme::cli {
namespace {

struct NetArguments {
  lab::NetworkPlan plan;
  ClusterOptions cluster;
  std::string transports, algorithms;
  std::string network_file = comm::default_network_file();
  std::string record;
  bool local = false, json = false, all_sizes = false, no_network_file = false;
};

void check_transports(const std::vector<std::string>& names) {
  constexpr std::array kKnown{"tcp", "grpc", "ucx", "mpi"};
  for (const std::string& name : names) {
    if (name == "nccl") fail(ErrorKind::unavailable, "--transports nccl: this build has no NCCL");
    if (std::ranges::find(kKnown, name) == kKnown.end()) {
      bad_input("--transports {}: must be one of tcp, grpc, ucx, mpi", name);
    }
  }
}

lab::NetworkPlan resolve(const NetArguments& arguments) {
  lab::NetworkPlan plan = arguments.plan;
  lab::check(plan.options);
  plan.transports = split_list(arguments.transports);
  check_transports(plan.transports);
  plan.measures_all_reduce = arguments.algorithms != "none";
  for (const std::string& name :
       plan.measures_all_reduce ? split_list(arguments.algorithms) : std::vector<std::string>()) {
    plan.algorithms.push_back(comm::parse_algorithm(name));
  }
  if (!plan.model.empty()) {
    if (!plan.measures_all_reduce) bad_input("--model has no effect with --algorithms none: nothing is all-reduced");
    find_model(plan.model);
  }
  return plan;
}

// Keep text apart from machine-readable output.
std::FILE* text_stream(const NetArguments& arguments) {
  return arguments.json || arguments.record == "-" ? stderr : stdout;
}

class NetworkText : public lab::NetworkObserver {
 public:
  NetworkText(std::FILE* stream, std::FILE* terminal, bool all_sizes, const lab::NetworkOptions& options)
      : stream_(stream), line_(terminal), all_sizes_(all_sizes), options_(options) {}

  void on_part(std::int64_t done, std::int64_t all) override {
    constexpr double kModes = 3;
    const double seconds_per_part =
        done > 0 ? seconds_since(started_) / static_cast<double>(done)
                 : kModes * options_.seconds_per_size * static_cast<double>(lab::message_sizes(options_).size());
    line_.draw(fmt::format("measuring: {} of {} parts done, about {}", done, all,
                           lab::time_left_text(seconds_per_part * static_cast<double>(all - done))));
  }

  void on_start(const lab::NetworkReport& report) override {
    for (const auto& [name, words] : report.transports) print(fmt::format("{:5} {}\n", name, words));
  }
  void on_pair(const lab::NetworkReport& report) override {
    print("\n" + lab::pair_table(report.pairs.back(), report.members, all_sizes_));
  }
  void on_pairs(const lab::NetworkReport& report) override {
    print("\n" + lab::fit_table(report.pairs, report.members));
  }
  void on_all_reduce(const lab::NetworkReport& report, const std::string& transport) override {
    print("\n" + lab::all_reduce_table(report.all_reduce, transport, all_sizes_));
  }
  void on_model(const lab::NetworkReport& report) override { print("\n" + lab::model_table(report)); }

 private:
  void print(const std::string& text) {
    line_.erase();
    std::fputs(text.c_str(), stream_);
    std::fflush(stream_);
  }

  std::FILE* stream_;
  report::TerminalLine line_;
  SteadyClock::time_point started_ = SteadyClock::now();
  bool all_sizes_;
  lab::NetworkOptions options_;
};

void keep_fits(const NetArguments& arguments, const lab::NetworkReport& report, const std::string& started) {
  comm::NetworkFits fits = lab::fits_of(report.pairs, {.started = started, .load = report.load, .cores = report.cores});
  if (arguments.no_network_file || arguments.network_file.empty() || fits.empty()) return;
  std::FILE* stream = text_stream(arguments);
  fmt::print(stream, "\n");
  const std::vector<std::string> problems = comm::remove_bad(fits);
  if (!fits.empty()) {
    comm::update_network_file(arguments.network_file, fits);
    fmt::print(stream, "kept for --all-reduce auto in {}, measured under a load of {:.1f} on {} cores: {}\n",
               arguments.network_file, report.load, report.cores, fmt::join(comm::names_of(fits), "; "));
  }
  for (const std::string& problem : problems) fmt::print(stream, "not kept for --all-reduce auto: {}\n", problem);
}

Json config_json(const NetArguments& arguments, const lab::NetworkPlan& plan) {
  return {{"min_bytes", plan.options.min_bytes},
          {"max_bytes", plan.options.max_bytes},
          {"perturbation", plan.options.perturbation},
          {"seconds_per_size", plan.options.seconds_per_size},
          {"pairs", plan.pairs},
          {"transports", arguments.transports},
          {"algorithms", arguments.algorithms},
          {"model", plan.model},
          {"comm_timeout", plan.timeout_seconds},
          {"network_file", arguments.no_network_file ? "" : arguments.network_file}};
}

// Only the first task prints.
void measure(const NetArguments& arguments, const lab::NetworkPlan& plan, const lab::NetworkJob& job) {
  if (job.control.rank() != 0) {
    lab::NetworkObserver silent;
    run_network_test(plan, job, silent);
    return;
  }
  const std::string started = record::rfc3339(std::chrono::system_clock::now());
  NetworkText text(text_stream(arguments), cluster::shows_progress() ? stderr : nullptr, arguments.all_sizes,
                   plan.options);
  const lab::NetworkReport report = run_network_test(plan, job, text);
  keep_fits(arguments, report, started);
  const Json record = to_json(network_record(report, started, config_json(arguments, plan)));
  if (arguments.json) write_json(record, "-");
  if (!arguments.record.empty()) cluster::write_record(record, arguments.record);
}

[[noreturn]] void refuse_alone() {
  bad_input(
      "one task has no peer to talk to: start several with `trireme launch --workers 2 -- net`, two on this machine "
      "with `trireme net --local`, or by hand with --worker-hosts");
}

bool wants(const lab::NetworkPlan& plan, const std::string& transport) {
  return plan.transports.empty() || std::ranges::find(plan.transports, transport) != plan.transports.end();
}

// Without --protocol a job uses all available transports. Only gRPC supports TLS; whoever asks for it wants nothing
// sent another way.
bool takes_every_transport(const NetArguments& arguments) {
  return arguments.cluster.protocol == "auto" && arguments.cluster.tls_cert.empty();
}

// MPI can be used if it started exactly the tasks of the cluster.
bool is_started_by_mpi(const comm::ClusterPlace& place) {
  const comm::LaunchPlace launched = comm::launch_place();
  return launched.size == place.spec.size() && launched.rank == place.rank() && comm::has_transport("MPI");
}

// Returns a transport made only for this test; it must live until the job is left.
std::unique_ptr<comm::Communicator> add_ucx(const NetArguments& arguments, const lab::NetworkPlan& plan,
                                            lab::NetworkJob& job) {
  if (!takes_every_transport(arguments) || !wants(plan, "ucx")) return nullptr;
  auto ucx = comm::add_ucx(job.control);
  if (ucx != nullptr) job.transports.push_back({"ucx", ucx.get()});
  return ucx;
}

int run_cluster_task(const NetArguments& arguments, const lab::NetworkPlan& plan, comm::ClusterPlace place) {
  if (!place.spec.servers.empty()) bad_input("--ps-hosts: `net` does not use parameter servers");
  if (place.spec.size() == 1) refuse_alone();
  if (takes_every_transport(arguments) && wants(plan, "mpi") && is_started_by_mpi(place)) place.protocol = "grpc+mpi";
  const auto world = comm::join_world(place, log_line);
  lab::NetworkJob job{.control = world->control(), .transports = {{"grpc", &world->control()}}, .hosts = {}};
  if (&world->communicator() != &world->control()) {
    job.transports.push_back({std::string(world->communicator().protocol()), &world->communicator()});
  }
  train::check_same_options(job.control, config_json(arguments, plan));
  auto ucx = add_ucx(arguments, plan, job);
  for (const std::string& address : place.spec.workers) {
    job.hosts.push_back(comm::parse_address(address, "--worker-hosts").host);
  }
  measure(arguments, plan, job);
  ucx.reset();
  world->leave();
  return 0;
}

// If MPI connects the ranks there are no addresses: hosts are identified by name.
int run_mpi_rank(const NetArguments& arguments, const lab::NetworkPlan& plan) {
  if (comm::launch_place().size == 1) refuse_alone();
  const auto world = comm::join_world();
  comm::Communicator& ranks = world->communicator();
  lab::NetworkJob job{.control = ranks, .transports = {{std::string(ranks.protocol()), &ranks}}, .hosts = {}};
  const bool one_node =
      std::ranges::all_of(ranks.members(), [](const comm::Member& member) { return member.node == 0; });
  for (const comm::Member& member : ranks.members()) job.hosts.push_back(one_node ? "localhost" : member.host);
  train::check_same_options(job.control, config_json(arguments, plan));
  auto ucx = add_ucx(arguments, plan, job);
  measure(arguments, plan, job);
  ucx.reset();
  world->leave();
  return 0;
}

// Runs the same command line as two tasks of a launch.
int run_local() {
  std::vector<std::string> words = record::command_line();
  std::erase(words, "--local");
  std::vector<std::string> command{cluster::this_binary(), "launch", "--workers", "2", "--oversubscribe", "--"};
  command.insert(command.end(), words.begin() + 1, words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  fail(ErrorKind::failed, "cannot start {}: {}", command[0], std::strerror(errno));
}

int run_net(const NetArguments& arguments) {
  const lab::NetworkPlan plan = resolve(arguments);
  const bool is_task = cluster::is_launched() || comm::launch_place().size > 1;
  if (arguments.local && !is_task) return run_local();
  if (arguments.local) bad_input("--local starts its own tasks; leave it out inside a launch");
  const auto place = resolve_cluster(arguments.cluster);
  const int rank = place ? place->rank() : comm::launch_place().rank;
  if (rank == 0) cluster::check_record_path(arguments.record);
  return place ? run_cluster_task(arguments, plan, *place) : run_mpi_rank(arguments, plan);
}

LaunchNeeds launch_needs(const NetArguments& arguments, const comm::JobSize& size) {
  if (size.servers > 0) bad_input("--ps: `net` does not use parameter servers");
  if (arguments.local) bad_input("--local starts its own tasks; leave it out inside a launch");
  resolve(arguments);
  if (size.workers == 1) refuse_alone();
  return {.protocol = protocol_in_launch(arguments.cluster),
          .uses_every_protocol = takes_every_transport(arguments) && comm::has_transport("gRPC"),
          .record_file = arguments.record};
}

void add_options(CLI::App& app, NetArguments& arguments) {
  lab::NetworkPlan& plan = arguments.plan;
  app.option_defaults()->group("Work");
  app.add_flag("--local", arguments.local, "Start two tasks on this machine");
  app.add_option("--pairs", plan.pairs,
                 "Pairs to measure: hosts (the first tasks of every two hosts, and the first two of each), all,\n"
                 "or pairs of tasks such as 0-1,0-2")
      ->capture_default_str();
  app.add_option("--transports", arguments.transports,
                 "Transports to measure: tcp (a plain socket, for comparison), grpc, ucx, mpi (default: all that the\n"
                 "job supports, or those of --protocol)");
  app.add_option("--min-bytes", plan.options.min_bytes,
                 "Smallest message in bytes; units such as 64k or 256MB are allowed")
      ->transform(byte_count())
      ->capture_default_str();
  app.add_option("--max-bytes", plan.options.max_bytes, "Largest message; sizes in between double")
      ->transform(byte_count())
      ->capture_default_str();
  app.add_option("--perturbation", plan.options.perturbation, "Also measure each size with N bytes less and more")
      ->capture_default_str();
  app.add_option("--seconds-per-size", plan.options.seconds_per_size, "Time for each size, mode and algorithm")
      ->capture_default_str();
  app.add_option("--algorithms", arguments.algorithms,
                 "All-reduce algorithms (ring, halving_doubling, tree, hierarchical, library, auto), or none\n"
                 "(default: all that the transport supports)");
  app.add_option("--model", plan.model, "Also all-reduce the gradients of this network, in the buckets of `bench`");
  app.add_option("--comm-timeout", plan.timeout_seconds,
                 "End the job after this many seconds without an answer from a task")
      ->capture_default_str();
  add_table(app, config::cluster_table(), arguments.cluster);
  app.option_defaults()->group("Output");
  app.add_flag("--all-sizes", arguments.all_sizes, "Show every size (default: every fourth)");
  app.add_flag("--json", arguments.json, "Print the record instead of tables, which go to stderr");
  app.add_option("--record", arguments.record, "Write the record (JSON) to this file; -: stdout, and text to stderr");
  app.add_option("--network-file", arguments.network_file,
                 "File for the fitted latencies and bandwidths, for --all-reduce auto (default: a file in the\n"
                 "user's cache folder)");
  app.add_flag("--no-network-file", arguments.no_network_file, "Do not save them");
}

}  // namespace

Command add_net(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "net",
      "Measure latency and bandwidth between the tasks of a job, over each of its transports, and all-reduce, as in:\n"
      "trireme launch --workers 2 -- net --protocol grpc, or on two tasks of this machine: trireme net --local");
  auto arguments = std::make_shared<NetArguments>();
  add_options(*app, *arguments);
  return {app, [arguments] { return run_net(*arguments); },
          [arguments](const comm::JobSize& size) { return launch_needs(*arguments, size); }};
}

}  // namespace trireme::cli
