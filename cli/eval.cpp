// `trireme eval`: how good the network of a checkpoint is on a data set's validation images.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/bench_options.hpp"
#include "cli/commands.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/log_line.hpp"
#include "trireme/lab/memory_check.hpp"
#include "trireme/lab/training.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::cli {
namespace {

struct EvalArguments {
  std::string checkpoint;
  lab::BenchmarkOptions options;
  std::int64_t batch_size = 64;
  bool average = false, json = false;
};

std::unique_ptr<train::CheckpointFile> open_checkpoint(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return std::make_unique<train::CheckpointFile>(path);
  auto file = train::open_latest_checkpoint(path);
  if (!file) bad_input("--checkpoint {}: there are no checkpoints in this folder", path);
  return file;
}

int run_eval(EvalArguments arguments) {
  if (arguments.batch_size < 1) bad_input("--batch-size {}: must be at least 1", arguments.batch_size);
  const auto file = open_checkpoint(arguments.checkpoint);
  arguments.options.model = file->state().model;
  arguments.options.num_classes = file->state().classes;
  arguments.options.batch_size = arguments.batch_size;
  arguments.options.forward_only = true;
  const lab::BenchmarkConfig config = lab::resolve(arguments.options, {});
  if (!config.data.is_real()) bad_input("eval needs --data-dir");
  for (const std::string& warning : lab::check_memory({config}, {{.host = "", .free = perf::free_memory()}})) {
    log_line("warning: " + warning);
  }
  const perf::ThreadPlan threads = perf::plan_threads(config.intra_threads, 1, config.bind);
  perf::apply(threads);
  const TuningOptions tuning = lab::tuning_options(config, perf::read_machine().cpu);
  const auto backend = make_backend(config.backend, tuning);
  train::Evaluator evaluator({.model = config.model,
                              .classes = config.num_classes,
                              .batch_size = arguments.batch_size,
                              .session = {.compile = lab::compile_options(config)}},
                             *backend);
  if (const std::string problem = lab::keep_timings(*tuning.cache); !problem.empty()) {
    log_line("warning: " + problem);
  }
  file->restore_values(evaluator.variables(), arguments.average);
  const lab::EvaluationData data = lab::open_evaluation_data(config.data, evaluator.model().info, arguments.batch_size);
  data::Pipeline pipeline(data.dataset, data.pipeline);
  const train::Accuracy accuracy = evaluator.run(pipeline);
  if (arguments.json) {
    report::write_json({{"checkpoint", file->path()},
                        {"model", file->state().model},
                        {"step", file->state().step},
                        {"samples", accuracy.samples},
                        {"top1", accuracy.top1_share()},
                        {"top5", accuracy.top5_share()},
                        {"loss", accuracy.mean_loss()}},
                       "-");
  } else {
    fmt::print("{}: {} after step {}: top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}  ({} images)\n", file->path(),
               file->state().model, file->state().step, 100 * accuracy.top1_share(), 100 * accuracy.top5_share(),
               accuracy.mean_loss(), accuracy.samples);
  }
  return 0;
}

}  // namespace

Command add_eval(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("eval", "Accuracy of a checkpoint on the validation images of a data set");
  auto arguments = std::make_shared<EvalArguments>();
  app->add_option("--checkpoint", arguments->checkpoint, "File, or folder: the newest one in it")->required();
  app->add_option("--data-dir", arguments->options.data.dir, "Data set")->required();
  app->add_option("--data-name", arguments->options.data.name, "Its format (default: what the folder looks like)");
  app->add_option("--batch-size", arguments->batch_size, "Images at a time")->capture_default_str();
  app->add_flag("--average", arguments->average, "The averages of the variables, where the checkpoint has them");
  app->add_option("--backend", arguments->options.backend, "Who computes: onednn or reference");
  app->add_flag("--json", arguments->json, "Print JSON");
  return {app, [arguments] { return run_eval(*arguments); }};
}

}  // namespace trireme::cli
