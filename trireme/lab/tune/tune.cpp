#include "trireme/lab/tune/tune.hpp"

#include <fmt/format.h>

#include "trireme/base/json.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/lab/study/trial.hpp"
#include "trireme/perf/peak.hpp"

namespace trireme::lab {
namespace {

constexpr const char* kFactsFile = "machine.facts";  // JSON, but not a record
// A trial ends by time; for a very small network this many steps are enough.
constexpr int kMostSteps = 2000;

double seconds_of(const TuneTrial& trial, double first_round) {
  return trial.round == TuneRound::explore ? first_round : 2 * first_round;
}

}  // namespace

// Of a trial at least as long as this one.
std::optional<record::RunRecord> TuneTrials::kept_record(const TuneTrial& trial) const {
  const StudyCell& cell = setup_.space.cells[trial.candidate];
  auto record =
      find_record(folder_.path(), {cell.slug, trial.repeat}, identity_of(setup_.space.plan, cell, trial.repeat));
  if (!record) return std::nullopt;
  if (record->study->trial_seconds < seconds_of(trial, setup_.trial_seconds)) return std::nullopt;
  const bool counts = !setup_.retry_failed && trial.candidate != setup_.space.default_cell;
  if (record->error && !counts) return std::nullopt;
  return record;
}

std::vector<std::string> TuneTrials::command_of(const TuneTrial& trial) const {
  Configuration configuration = setup_.space.cells[trial.candidate].configuration;
  configuration.push_back({"max-seconds", seconds_of(trial, setup_.trial_seconds)});
  if (find(configuration, "num-batches") == nullptr) configuration.push_back({"num-batches", kMostSteps});
  return command_words(configuration);
}

TuneOutcome TuneTrials::outcome_of(const TuneTrial& trial, const record::RunRecord& record) const {
  if (record.error) return {.ending = TuneOutcome::Ending::failed, .error = *record.error};
  const double images = setup_.space.candidates[trial.candidate].layout.images();
  return {.step_seconds = images / record.images_per_second()};
}

TuneOutcome TuneTrials::operator()(const TuneTrial& trial) {
  if (const auto record = kept_record(trial)) {
    ++runs_found_;
    return outcome_of(trial, *record);
  }
  const StudyCell& cell = setup_.space.cells[trial.candidate];
  std::vector<std::string> words = command_of(trial);
  record::StudyRun study = identity_of(setup_.space.plan, cell, trial.repeat);
  study.command = "trireme " + shell_line(words);
  words.insert(words.begin(), setup_.program);
  study.kind = setup_.space.plan.figure;
  study.round = to_string(trial.round);
  study.trial_seconds = seconds_of(trial, setup_.trial_seconds);
  const TrialResult result = run_into(folder_, {cell.slug, trial.repeat},
                                      {.command = words,
                                       .limit_seconds = setup_.run_limit_seconds,
                                       .while_running =
                                           [&](double seconds) {
                                             if (setup_.while_running) setup_.while_running(trial, seconds);
                                           }},
                                      std::move(study), stop_);
  if (result.ending == TrialResult::Ending::interrupted) {
    return {.ending = TuneOutcome::Ending::interrupted, .seconds = result.seconds};
  }
  ++runs_made_;
  TuneOutcome outcome = outcome_of(trial, result.record);
  outcome.seconds = result.seconds;
  outcome.error_kind = result.error;
  return outcome;
}

CostFacts cost_facts(const StudyFolder& folder, const TuneSpace& space) {
  const std::filesystem::path path = folder.path() / kFactsFile;
  const Json kept = std::filesystem::exists(path) ? read_json(path) : Json();
  CostFacts facts{.flops_per_image = space.flops_per_image,
                  .gradient_bytes = space.gradient_bytes,
                  .flops_per_second = number_field(kept, {"core_flops_per_second"}).value_or(0),
                  .bytes_per_second = number_field(kept, {"memory_bytes_per_second"}).value_or(0)};
  if (facts.flops_per_second > 0 && facts.bytes_per_second > 0) return facts;
  facts.flops_per_second = perf::measure_fma_peak(1).flops_per_second;
  facts.bytes_per_second = perf::measure_memory_bandwidth(space.plan.machine.cores).copy.best;
  write_json({{"core_flops_per_second", facts.flops_per_second}, {"memory_bytes_per_second", facts.bytes_per_second}},
             path);
  return facts;
}

Json config_of(const TuneSpace& space, std::size_t candidate, const std::string& about) {
  Json config{{"about", about}};
  for (const Setting& setting : space.cells[candidate].configuration) config[setting.option] = setting.value;
  return config;
}

}  // namespace trireme::lab
