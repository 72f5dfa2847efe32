// `trireme eval`: accuracy of a checkpoint's network on a data set's validation images.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/bench_options.hpp"
#include "cli/commands.hpp"
#include "cli/data_parts.hpp"
#include "cli/interrupt.hpp"
#include "cli/table_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/record/run_record.hpp"
#include "trireme/train/checkpoint_evaluation.hpp"
#include "trireme/train/job.hpp"

namespace trireme::cli {
namespace {

struct EvalArguments {
  train::EvaluationOptions options;
  ClusterOptions cluster;
  std::int64_t batch_size = 64;
  bool json = false;
};

void print_text(const train::CheckpointEvaluation& evaluation, const train::Accuracy& accuracy) {
  const train::CheckpointFile& file = evaluation.checkpoint();
  fmt::print("{}: {} after step {}: top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}  ({} images{})\n", file.path(),
             file.state().model, file.state().step, 100 * accuracy.top1_share(), 100 * accuracy.top5_share(),
             accuracy.mean_loss(), accuracy.samples,
             accuracy.broken > 0 ? fmt::format(", {} broken left out", accuracy.broken) : "");
}

void print_json(const train::CheckpointEvaluation& evaluation, const train::Accuracy& accuracy) {
  const train::CheckpointFile& file = evaluation.checkpoint();
  write_json({{"checkpoint", file.path()},
              {"model", file.state().model},
              {"step", file.state().step},
              {"preprocessing", evaluation.preprocessing()},
              {"samples", accuracy.samples},
              {"bad_records", accuracy.broken},
              {"top1", accuracy.top1_share()},
              {"top5", accuracy.top5_share()},
              {"loss", accuracy.mean_loss()}},
             "-");
}

// Only the first worker prints.
int evaluate(const EvalArguments& arguments, comm::Communicator& workers, const std::stop_token& stop) {
  const bool is_first = workers.rank() == 0;
  train::CheckpointEvaluation evaluation(arguments.options, workers);
  if (is_first) {
    for (const std::string& warning : evaluation.warnings()) log_line("warning: " + warning);
  }
  if (is_first && !arguments.json) {
    fmt::print("images: {}\n", evaluation.preprocessing());
    std::fflush(stdout);
  }
  std::optional<train::Accuracy> accuracy;
  {
    ProgressLine progress("evaluating");
    train::Evaluator::OnProgress on_progress;
    if (is_first) {
      on_progress = [show = progress.handler(), all = evaluation.samples()](std::int64_t done) { show(done, all); };
    }
    accuracy = evaluation.run(stop, on_progress);
  }
  if (!accuracy) return kInterruptedExitCode;
  if (is_first) (arguments.json ? print_json : print_text)(evaluation, *accuracy);
  return 0;
}

int run_eval(EvalArguments arguments) {
  arguments.options.step.batch_size = arguments.batch_size;
  const auto cluster = resolve_cluster(arguments.cluster);
  Interrupt interrupt("interrupted: stopping after this batch (interrupt again to stop at once)");
  train::Job job(cluster, log_line);
  if (job.is_server()) bad_input("eval does not use parameter servers");
  const int code = evaluate(arguments, job.workers(), interrupt.listen());
  job.leave();
  return code;
}

LaunchNeeds launch_needs(const EvalArguments& arguments, const comm::JobSize& size) {
  if (size.servers > 0) bad_input("--ps: `eval` does not use parameter servers");
  train::resolve_data(arguments.options.step.data, true);
  return {.protocol = protocol_in_launch(arguments.cluster), .needs_first_worker = true};
}

}  // namespace

Command add_eval(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("eval",
                                        "Measure the accuracy of a checkpoint on the validation images of a data set; "
                                        "`trireme launch` divides them among several workers");
  auto arguments = std::make_shared<EvalArguments>();
  train::EvaluationOptions& options = arguments->options;
  app->add_option("--checkpoint", options.checkpoint, "Checkpoint file, or a folder to use its newest one")->required();
  app->add_option("--batch-size", arguments->batch_size, "Images per worker at a time")->capture_default_str();
  app->add_flag("--average", options.average, "Use the averages of the variables, if the checkpoint has them");
  app->add_flag("--allow-other-data", options.allow_other_data,
                "Allow images whose size, colours or classes differ from those the network was trained on");
  app->add_flag("--json", arguments->json, "Print JSON");
  add_evaluation_options(*app, options.step);
  add_table(*app, config::cluster_table(), arguments->cluster);
  return {app, [arguments] { return run_eval(*arguments); },
          [arguments](const comm::JobSize& size) { return launch_needs(*arguments, size); }};
}

}  // namespace trireme::cli
