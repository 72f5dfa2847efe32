// `trireme train`: trains a network on a data set, with evaluation and checkpoints.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "cli/bench_options.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/trace.hpp"
#include "cli/training_output.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/report/trace_writer.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/trainer.hpp"
#include "trireme/train/training_config.hpp"

namespace trireme::cli {
namespace {

struct TrainArguments {
  train::TrainingOptions options;
  ClusterArguments cluster;
  std::string tensorboard, csv, record, trace;
};

struct TrainOutcome {
  train::TrainingEnd end = train::TrainingEnd::done;
  std::vector<std::string> problems = {};  // what could not be written
};

// Only the first worker prints.
TrainOutcome run_first(const TrainArguments& arguments, train::Trainer& trainer, const std::stop_token& stop) {
  std::FILE* text_stream = arguments.record == "-" ? stderr : stdout;
  TrainingText text(text_stream, cluster::shows_progress() ? stderr : nullptr, trainer);
  TrainingRecord record(trainer);
  std::vector<train::TrainerObserver*> observers{&text, &record};
  std::optional<TrainingCsv> csv;
  std::optional<TrainingCurves> curves;
  if (!arguments.csv.empty()) observers.push_back(&csv.emplace(arguments.csv));
  if (!arguments.tensorboard.empty()) {
    observers.push_back(&curves.emplace(arguments.tensorboard, trainer));
  }
  TrainOutcome outcome{.end = trainer.run(observers, stop)};
  // On a full disk a smaller file may still fit: try each, and report all failures.
  const auto attempt = [&outcome](const std::function<void()>& write) {
    try {
      write();
    } catch (const std::exception& error) {
      outcome.problems.emplace_back(error.what());
    }
  };
  if (const std::string& problem = trainer.checkpoint_problem(); !problem.empty()) {
    outcome.problems.push_back("the last checkpoint could not be written: " + problem);
  }
  if (!arguments.record.empty()) attempt([&] { write_json(record.json(trainer), arguments.record); });
  if (csv) attempt([&] { csv->flush(); });
  if (curves) attempt([&] { curves->flush(); });
  if (const std::string path = trainer.last_checkpoint(); !path.empty()) {
    attempt([&] { fmt::print(text_stream, "checkpoint: {}\n", path); });
  }
  if (const auto bad = trainer.bad_records(); bad > 0) {
    attempt([&] {
      fmt::print(text_stream, "bad records: {} skipped, {} of them validation images\n", bad,
                 trainer.bad_validation_records());
    });
  }
  return outcome;
}

void say_timing_of_kernels() {
  std::fputs("timing the kernels of this network, once for each shape and CPU\n", stderr);
}

TrainOutcome run_worker(const TrainArguments& arguments, const train::TrainingConfig& config,
                        const train::ProcessGroup& group, perf::Recorder* recorder, const std::stop_token& stop) {
  const bool is_first = group.workers.rank() == 0;
  train::Trainer trainer(
      config, group, {.on_tuning = is_first ? say_timing_of_kernels : std::function<void()>(), .recorder = recorder});
  return is_first ? run_first(arguments, trainer, stop) : TrainOutcome{.end = trainer.run({}, stop)};
}

// Runs before anything slow. Creates nothing: the run may still be rejected for other reasons.
void check_paths(const TrainArguments& arguments) {
  if (!arguments.record.empty()) report::check_writable(arguments.record);
  if (!arguments.trace.empty()) report::check_trace_path(arguments.trace);
  if (!arguments.csv.empty()) TrainingCsv::check(arguments.csv);
  if (!arguments.tensorboard.empty()) train::EventFile::check(arguments.tensorboard);
}

int run_train(const TrainArguments& arguments) {
  const auto cluster = resolve_cluster(arguments.cluster);
  const int rank = cluster ? cluster->rank() : comm::launch_place().rank;
  if (rank == 0) check_paths(arguments);
  const comm::JobSize size = cluster ? cluster->spec.job_size() : comm::JobSize{.workers = comm::launch_place().size};
  const train::TrainingConfig config = train::resolve(arguments.options, size);
  Interrupt interrupt;
  train::Job job(cluster, log_line);
  auto trace = start_trace(arguments.trace, job, size.workers, config.step.trace_steps);
  perf::Recorder* const recorder = recorder_of(trace);
  TrainOutcome outcome;
  if (job.is_server()) {
    job.serve(config.step.intra_threads, recorder);
  } else {
    outcome = run_worker(arguments, config, job.group(), recorder, interrupt.listen());
  }
  finish_trace(std::move(trace), arguments.trace, arguments.record == "-" ? stderr : stdout);
  job.leave();  // first: a file that could not be written is not a failure of the job
  if (!outcome.problems.empty()) fail(ErrorKind::failed, "{}", fmt::join(outcome.problems, "; "));
  return outcome.end == train::TrainingEnd::interrupted ? kInterruptedExitCode : 0;
}

LaunchNeeds launch_needs(const TrainArguments& arguments, const comm::JobSize& size) {
  const train::TrainingConfig config = train::resolve(arguments.options, size);
  return training_needs(arguments.cluster, config.step.distribution);
}

void add_training(CLI::App& app, train::TrainingOptions& options) {
  const OptionGroup training(app, "Training");
  app.add_option("--epochs", options.epochs, "Number of passes over all images")->capture_default_str();
  app.add_option("--eval", options.evaluate_on, "Workers that evaluate on the validation images: all, first or none")
      ->capture_default_str();
  app.add_option("--eval-every", options.evaluate_every, "Epochs between evaluations; 0: at the end only")
      ->capture_default_str();
  app.add_option("--eval-batch-size", options.eval_batch_size, "Images evaluated at a time (default: --batch-size)");
  app.add_option("--eval-crop", options.step.data.eval_crop,
                 "Crop of validation images: none or centre (default: none if images and network are small)");
  app.add_option("--target-accuracy", options.target_accuracy, "Stop when top-1 accuracy reaches this share; 0: never")
      ->capture_default_str();
  app.add_option("--average", options.average_decay,
                 "Keep moving averages of all variables with this decay, such as 0.999, and evaluate these; 0: off")
      ->capture_default_str();
  const OptionGroup gradients(app, "Gradients");
  app.add_option("--scale-learning-rate", options.reference_batch,
                 "Global batch that learning rates are given for, such as 256; they are scaled to the actual one\n"
                 "(linear scaling; combine with --num-learning-rate-warmup-epochs); 0: no scaling")
      ->capture_default_str();
  app.add_option("--accumulate", options.accumulate, "Number of batches whose mean gradient makes one update")
      ->capture_default_str();
  app.add_option("--clip-norm", options.clip_norm, "Maximum norm of all gradients together; 0: no limit")
      ->capture_default_str();
  app.add_option("--lars", options.lars,
                 "Use layer-wise rates for large batches, with this coefficient, such as 0.001");
  app.add_flag("--skip-batch-norm-decay", options.skip_batch_norm_decay,
               "Apply no weight decay to batch norm's scales and offsets");
  const OptionGroup checkpoints(app, "Checkpoints");
  app.add_option("--checkpoint-dir", options.checkpoint_dir, "Folder for checkpoints (default: none are written)");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Steps between checkpoints; 0: one per epoch")
      ->capture_default_str();
  app.add_option("--keep-checkpoints", options.keep_checkpoints, "Number of newest checkpoints to keep")
      ->capture_default_str();
  app.add_flag("--resume", options.resume, "Continue from the last checkpoint, if there is one");
  app.add_flag("--allow-other-data", options.allow_other_data,
               "With --resume: allow a data set other than the checkpoint's");
}

}  // namespace

Command add_train(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "train", "Train a network on a data set, with evaluation and checkpoints; `trireme launch` uses several workers");
  auto arguments = std::make_shared<TrainArguments>();
  add_config_option(*app);
  add_training(*app, arguments->options);
  add_training_step_options(*app, arguments->options.step);
  add_cluster_options(*app, arguments->cluster);
  const OptionGroup output(*app, "Output");
  app->add_option("--tensorboard", arguments->tensorboard, "Write curves for TensorBoard into this folder");
  app->add_option("--csv", arguments->csv, "Append a line for each epoch to this file");
  app->add_option("--display-every", arguments->options.display_every,
                  "Steps between points of the curves in the record and TensorBoard")
      ->capture_default_str();
  app->add_option("--record", arguments->record, "Write the record (JSON) to this file; -: stdout, and text to stderr");
  add_trace_options(*app, arguments->trace, arguments->options.step);
  return {app, [arguments] { return run_train(*arguments); },
          [arguments](const comm::JobSize& size) { return launch_needs(*arguments, size); }};
}

}  // namespace trireme::cli
