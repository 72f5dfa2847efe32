// `trireme train`: trains a network on a data set, with evaluation and checkpoints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bench_options.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/table_options.hpp"
#include "cli/trace.hpp"
#include "cli/training_output.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/report/trace_writer.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/membership_log.hpp"
#include "trireme/train/replay.hpp"
#include "trireme/train/trainer.hpp"
#include "trireme/train/training_config.hpp"

namespace trireme::cli {
namespace {

struct TrainArguments {
  train::TrainingOptions options;
  ClusterOptions cluster;
  train::OutputOptions files;
};

void say_timing_of_kernels() {
  std::fputs("timing the kernels of this network, once for each shape and CPU\n", stderr);
}

TrainOutcome run_worker(const TrainArguments& arguments, const train::TrainingConfig& config,
                        const train::ProcessGroup& group, perf::Recorder* recorder, const std::stop_token& stop) {
  const bool is_first = group.workers.rank() == 0;
  // Before what takes a while, and after what may be refused.
  auto introduce = [&, is_shown = !is_first]() mutable {
    if (std::exchange(is_shown, true)) return;
    std::FILE* const text_stream = arguments.files.record == "-" ? stderr : stdout;
    fmt::print(text_stream, "Trireme {} trains {} for {:g} epoch{}\n", perf::build_info().version,
               config.step.options.model, config.epochs, config.epochs == 1 ? "" : "s");
    std::fflush(text_stream);
  };
  const auto before_tuning = [&] {
    introduce();
    say_timing_of_kernels();
  };
  train::Trainer trainer(config, group,
                         {.on_tuning = is_first ? before_tuning : std::function<void()>(),
                          .recorder = recorder,
                          .membership_log = arguments.files.membership_log});
  introduce();
  return is_first ? run_with_output(trainer, arguments.files, stop) : TrainOutcome{.end = trainer.run({}, stop)};
}

// The workers of a run as threads of this process; the first one shows what it did.
int run_replay(const TrainArguments& arguments, const std::stop_token& stop) {
  if (comm::launch_place().size > 1 || cluster::is_launched()) {
    bad_input("--replay repeats all workers in one process; run it without a launcher");
  }
  const train::Membership membership = train::read_membership(arguments.options.replay);
  const auto workers = static_cast<int>(membership.nodes.size());
  const train::TrainingConfig config = train::resolve(arguments.options, {.workers = workers});
  TrainOutcome outcome;
  std::uint64_t hash = 0;
  train::replay(config, membership, [&](const train::TrainingConfig& own, const train::ProcessGroup& group) {
    train::Trainer trainer(own, group);
    if (group.workers.rank() > 0) {
      trainer.run({}, stop);
    } else {
      outcome = run_with_output(trainer, arguments.files, stop);
      hash = trainer.hash();
    }
  });
  if (!outcome.problems.empty()) fail(ErrorKind::failed, "{}", fmt::join(outcome.problems, "; "));
  if (outcome.end == train::TrainingEnd::interrupted) return kInterruptedExitCode;
  if (hash != membership.hash) {
    fail(ErrorKind::failed, "the weights are not those of the run: hash {:016x}, and {:016x} in the run{}", hash,
         membership.hash,
         arguments.options.step.deterministic ? "" : "; only runs with --deterministic repeat every bit");
  }
  fmt::print("The weights are the same to the bit as in the run ({:016x})\n", hash);
  return 0;
}

void check_membership_log(const TrainArguments& arguments, const train::TrainingConfig& config) {
  const auto& distribution = config.step.distribution;
  if (arguments.files.membership_log.empty() || (distribution.is_elastic() && distribution.workers > 1)) return;
  bad_input("--membership-log has no effect without --elastic and several workers");
}

int run_train(const TrainArguments& arguments) {
  const auto cluster = resolve_cluster(arguments.cluster);
  const int rank = cluster ? cluster->rank() : comm::launch_place().rank;
  if (rank == 0) check(arguments.files);  // before anything slow
  Interrupt interrupt;
  if (!arguments.options.replay.empty()) return run_replay(arguments, interrupt.listen());
  if (rank == 0 && !arguments.files.trace.empty()) report::check_trace_path(arguments.files.trace);
  const comm::JobSize size = cluster ? cluster->spec.job_size() : comm::JobSize{.workers = comm::launch_place().size};
  const train::TrainingConfig config = train::resolve(arguments.options, size);
  check_membership_log(arguments, config);
  train::Job job(cluster, log_line);
  auto trace = start_trace(arguments.files.trace, job, config.step);
  perf::Recorder* const recorder = recorder_of(trace);
  TrainOutcome outcome;
  if (job.is_server()) {
    job.serve(config.step.intra_threads, recorder);
  } else {
    outcome =
        run_worker(arguments, config, job.group(config.step.distribution.is_elastic()), recorder, interrupt.listen());
  }
  finish_trace(std::move(trace), arguments.files.trace, arguments.files.record == "-" ? stderr : stdout);
  job.leave();  // first: a file that could not be written is not a failure of the job
  if (!outcome.problems.empty()) fail(ErrorKind::failed, "{}", fmt::join(outcome.problems, "; "));
  return outcome.end == train::TrainingEnd::interrupted ? kInterruptedExitCode : 0;
}

LaunchNeeds launch_needs(const TrainArguments& arguments, const comm::JobSize& size) {
  const train::TrainingConfig config = train::resolve(arguments.options, size);
  if (!arguments.options.replay.empty())
    bad_input("--replay repeats all workers in one process; run it without launch");
  check_membership_log(arguments, config);
  return training_needs(arguments.cluster, config.step.distribution, arguments.files.record);
}

}  // namespace

Command add_train(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "train", "Train a network on a data set, with evaluation and checkpoints; `trireme launch` uses several workers");
  auto arguments = std::make_shared<TrainArguments>();
  add_config_option(*app);
  add_table<train::LoopOptions>(*app, config::loop_table(), arguments->options);
  add_table(*app, config::step_table(), arguments->options.step, {"forward-only", "trace-steps"});
  add_table(*app, config::cluster_table(), arguments->cluster);
  add_table(*app, config::output_table(), arguments->files);
  add_option(*app, config::step_table(), "trace-steps", arguments->options.step);
  return {app, [arguments] { return run_train(*arguments); },
          [arguments](const comm::JobSize& size) { return launch_needs(*arguments, size); }};
}

}  // namespace trireme::cli
