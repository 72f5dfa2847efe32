// `trireme tune`: finds a fast configuration of a network on this machine with few trials, and writes it to a file for
// --config of `bench`, `train` and `launch`.
#include "trireme/lab/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/option_catalog.hpp"
#include "cli/study_plans.hpp"
#include "cli/tune_output.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/launch_hosts.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {
namespace {

constexpr std::size_t kShownEstimates = 5;
constexpr std::size_t kLongestShown = 200;

const char* purpose(lab::TuneRound round) {
  constexpr std::array<const char*, 3> kPurposes{"short trials of what the model rates best or knows least about",
                                                 "longer trials of the best so far",
                                                 "interleaved repeats of the finalists and the default"};
  return kPurposes.at(static_cast<std::size_t>(round));
}

// A line per trial, what each round keeps and drops, and on a terminal the current trial.
class TuneText : public lab::TuneObserver {
 public:
  // Lines go to `stream`, the current trial to `terminal`, if any.
  TuneText(const lab::TuneSpace& space, const lab::TuneObjective& objective, const lab::TuneSettings& settings,
           std::FILE* stream, std::FILE* terminal)
      : space_(space), objective_(objective), settings_(settings), stream_(stream), line_(terminal) {}

  void on_round(lab::TuneRound round, const lab::StepCostModel& model, const std::vector<std::size_t>& order,
                const std::vector<double>& estimates) override {
    fmt::print(stream_, "\n{}: {}\n  the model: {}\n", to_string(round), purpose(round), model.text());
    if (round != lab::TuneRound::explore) return;
    for (std::size_t i = 0; i < std::min(kShownEstimates, order.size()); ++i) {
      fmt::print(stream_, "  {} {}: {}\n", i == 0 ? "thinks best" : "       then", short_text(space_, order[i]),
                 objective_.text(estimates[order[i]]));
    }
  }
  void on_sample(const lab::TuneSample& sample) override {
    end_trial();
    const std::string repeat = sample.trial.repeat > 1 ? fmt::format("  run {}", sample.trial.repeat) : "";
    fmt::print(stream_, "{:>3}  {}{}: {} (estimate {})\n", ++trials_, short_text(space_, sample.trial.candidate),
               repeat, objective_.text(sample.score), objective_.text(sample.estimate));
    std::fflush(stream_);
  }
  void on_failure(const lab::TuneTrial& trial, const std::string& error) override {
    end_trial();
    fmt::print(stream_, "{:>3}  {}: failed: {}\n", ++trials_, short_text(space_, trial.candidate),
               error.substr(0, kLongestShown));
    std::fflush(stream_);
  }
  void on_round_end(const lab::RoundEnd& end, const std::vector<double>& estimates) override {
    for (const std::size_t candidate : end.kept) {
      fmt::print(stream_, "  kept    {}: {}\n", short_text(space_, candidate), objective_.text(estimates[candidate]));
    }
    for (const std::size_t candidate : end.dropped) {
      fmt::print(stream_, "  dropped {}: {}\n", short_text(space_, candidate), objective_.text(estimates[candidate]));
    }
    std::fflush(stream_);
  }
  void on_wait(const lab::TuneTrial& trial, double seconds) {
    trial_seconds_ = seconds;
    line_.draw(fmt::format("{} of {} trials{}; {}: {}, {:.0f}s", trials_, settings_.trials, time_left(),
                           to_string(trial.round), short_text(space_, trial.candidate), seconds));
  }
  void erase_line() { line_.erase(); }

 private:
  void end_trial() {
    line_.erase();
    if (trial_seconds_ > 0) ++timed_;  // others were taken from the folder
    seconds_ += std::exchange(trial_seconds_, 0);
  }
  // Empty before the first trial has ended.
  std::string time_left() const {
    if (timed_ == 0 || trials_ >= settings_.trials) return "";
    const auto trials_left = static_cast<double>(settings_.trials - trials_);
    double left = seconds_ / timed_ * trials_left - trial_seconds_;
    if (settings_.budget_seconds) left = std::min(left, *settings_.budget_seconds - seconds_ - trial_seconds_);
    return ", about " + lab::time_left_text(left);
  }

  const lab::TuneSpace& space_;
  lab::TuneObjective objective_;
  lab::TuneSettings settings_;
  std::FILE* stream_;
  report::TerminalLine line_;
  std::size_t trials_ = 0;
  int timed_ = 0;             // trials of this process
  double seconds_ = 0;        // of these
  double trial_seconds_ = 0;  // of the current one
};

struct TuneArguments {
  lab::TuneRequest request;
  std::string objective = "images-per-second";
  std::string out, config_out = "tuned.json", budget = "10m", trial_time = "2s", run_limit = "10m";
  std::optional<std::int64_t> trials;
  bool dry_run = false, retry_failed = false;
};

lab::TuneObjective::Goal parse_goal(const std::string& text) {
  using Goal = lab::TuneObjective::Goal;
  constexpr std::array<std::pair<const char*, Goal>, 3> kGoals{
      {{"images-per-second", Goal::images_per_second},
       {"images-per-second-at-batch", Goal::images_per_second_at_batch},
       {"epoch-time", Goal::epoch_time}}};
  const auto found = std::ranges::find_if(kGoals, [&](const auto& goal) { return goal.first == text; });
  if (found != kGoals.end()) return found->second;
  bad_input("--objective {}: must be images-per-second, images-per-second-at-batch or epoch-time", text);
}

lab::TuneSettings settings_of(const TuneArguments& arguments, std::size_t candidates) {
  lab::TuneSettings settings = lab::settings_for(arguments.trials.value_or(lab::usual_trials(candidates)));
  settings.budget_seconds = lab::parse_duration(arguments.budget, "--budget");
  return settings;
}

int dry_run(const lab::TuneSpace& space, const lab::TuneObjective& objective, const lab::TuneSettings& settings) {
  fmt::print("{}", introduction(space, objective, settings));
  for (const lab::StudyCell& cell : space.cells) fmt::print("  {}\n", cell_text(cell));
  return 0;
}

int finish(const TuneArguments& arguments, const lab::TuneSpace& space, const lab::TuneResult& result,
           const std::filesystem::path& out) {
  fmt::print("{}", conclusion(space, arguments.request.objective, result));
  if (result.failures > 0)
    fmt::print("logs of failed trials: {}; to repeat them: --retry-failed\n", (out / "logs").string());
  if (result.interrupted || result.out_of_time) std::fputs(go_on_text().c_str(), stdout);
  fmt::print("records: {}; to view them: trireme report {}\n", (out / "runs").string(), shell_line({out.string()}));
  if (result.interrupted) return kInterruptedExitCode;
  const std::string about = fmt::format("found by trireme tune, {}: {}",
                                        record::rfc3339(std::chrono::system_clock::now()), gain_text(result));
  write_json(lab::config_of(space, result.chosen, about), arguments.config_out);
  if (arguments.config_out == "-") return 0;
  const std::string command = lab::command_words(space.cells[result.chosen].configuration).front();
  fmt::print("configuration: {}; to use it: trireme {} --config {}{}\n", arguments.config_out, command,
             shell_line({arguments.config_out}), command == "launch" ? " -- bench" : "");
  return 0;
}

std::string count_text(const lab::TuneTrials& trials, const lab::TuneSpace& space, const lab::TuneResult& result) {
  std::string text = fmt::format("\n{} trials were run", trials.runs_made());
  if (trials.runs_found() > 0) text += fmt::format(" and {} taken from the folder", trials.runs_found());
  text += fmt::format(", of {} configurations", space.cells.size());
  if (result.failures > 0) text += fmt::format("; {} failed", result.failures);
  return text + "\n";
}

int run_tune(TuneArguments arguments) {
  arguments.request.objective.goal = parse_goal(arguments.objective);
  const lab::OptionCatalog options = option_catalog();
  const lab::TuneSpace space = lab::make_tune_space(
      arguments.request, options, this_machine(),
      {.starts_workers = comm::has_transport("MPI"), .starts_servers = comm::has_transport("gRPC")});
  const lab::TuneSettings settings = settings_of(arguments, space.cells.size());
  const double trial_seconds = lab::parse_duration(arguments.trial_time, "--trial-time");
  const double run_limit_seconds = lab::parse_duration(arguments.run_limit, "--run-limit");
  const lab::TuneObjective& objective = arguments.request.objective;
  const std::filesystem::path out = arguments.out.empty() ? space.plan.name : arguments.out;
  if (arguments.dry_run) {
    check_plan(out, to_json(space.plan));
    return dry_run(space, objective, settings);
  }
  check_not_launched("a tune");
  Interrupt interrupt("interrupted: stopping this trial (interrupt again to stop at once)");
  const lab::StudyFolder folder(out);
  check_writable(arguments.config_out, "the configuration");  // may be in that folder
  take_plan(folder, to_json(space.plan));
  fmt::print("{}", introduction(space, objective, settings));
  std::fflush(stdout);
  TuneText text(space, objective, settings, stdout, cluster::shows_progress() ? stderr : nullptr);
  lab::TuneTrials trials({.space = space,
                          .program = cluster::this_binary(),
                          .trial_seconds = trial_seconds,
                          .run_limit_seconds = run_limit_seconds,
                          .retry_failed = arguments.retry_failed,
                          .while_running = [&](const lab::TuneTrial& trial, double s) { text.on_wait(trial, s); }},
                         folder, interrupt.listen());
  const lab::TuneResult result =
      lab::search_fastest(space.candidates, space.default_cell, lab::cost_facts(folder, space), objective, settings,
                          std::ref(trials), text);
  text.erase_line();
  fmt::print("{}", count_text(trials, space, result));
  return finish(arguments, space, result, out);
}

}  // namespace

Command add_tune(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "tune",
      "Find the fastest processes, threads, batch, servers and exchange for a network here in a few trials, and write\n"
      "them to a file for --config. Run it again with the same folder to continue.");
  auto arguments = std::make_shared<TuneArguments>();
  lab::TuneRequest& request = arguments->request;
  app->add_option("--model", request.model, "Network; `trireme models` lists them")->capture_default_str();
  app->add_option("--objective", arguments->objective,
                  "Goal: images-per-second, images-per-second-at-batch (with --effective-batch) or\n"
                  "epoch-time (with --samples)")
      ->capture_default_str();
  app->add_option("--effective-batch", request.objective.effective_batch,
                  "Images per step of all workers together, for images-per-second-at-batch");
  app->add_option("--samples", request.objective.samples, "Images per epoch, for epoch-time");
  app->add_option("--workers-up-to", request.workers_up_to,
                  "Maximum number of workers to try (default: one per core; on GPUs 1)");
  app->add_option("--batches", request.batches,
                  "Batch sizes per worker to try (default: powers of two up to the network's own)")
      ->delimiter(',');
  app->add_option("--set", request.set,
                  "Set an option of bench or launch for all trials, such as --set precision=bf16; for an option that\n"
                  "is searched, option=a,b keeps only these values. May be repeated")
      ->allow_extra_args(false);
  app->add_option("--budget", arguments->budget, "Total time limit, such as 10m or 1h30m")->capture_default_str();
  app->add_option("--trials", arguments->trials,
                  "Maximum number of trials (default: 15 % of the configurations, at least 20 and at most 60)");
  app->add_option("--trial-time", arguments->trial_time,
                  "Time for the steps of a short trial; longer ones take twice that")
      ->capture_default_str();
  app->add_option("--run-limit", arguments->run_limit, "Time after which a trial counts as failed")
      ->capture_default_str();
  app->add_option("--out", arguments->out, "Folder for the records (default: tune-MODEL, in the current folder)");
  app->add_option("--config-out", arguments->config_out, "File for the configuration found")->capture_default_str();
  app->add_flag("--retry-failed", arguments->retry_failed, "Repeat trials that failed before");
  app->add_flag("--dry-run", arguments->dry_run, "Show what would be searched without running anything");
  return {app, [arguments] { return run_tune(*arguments); }};
}

}  // namespace trireme::cli
