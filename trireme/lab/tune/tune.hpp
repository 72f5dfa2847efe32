// Runs the trials of `trireme tune` as processes, with their records in a study's folder. A trial with a record is not
// run again, so an ended tune replays its records and continues. Made by `trireme tune` for search_fastest().
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "trireme/lab/study/study_folder.hpp"
#include "trireme/lab/tune/tune_search.hpp"

namespace trireme::lab {

struct TuneSetup {
  const TuneSpace& space;
  std::string program;           // the `trireme` binary
  double trial_seconds = 2;      // of steps, in the first round; later rounds take twice that
  double run_limit_seconds = 0;  // a longer trial has failed
  bool retry_failed = false;     // ignores records of failures; those of the default are always ignored
  std::function<void(const TuneTrial& trial, double seconds)> while_running = {};
};

class TuneTrials {
 public:
  TuneTrials(const TuneSetup& setup, const StudyFolder& folder, std::stop_token stop)
      : setup_(setup), folder_(folder), stop_(std::move(stop)) {}

  TuneOutcome operator()(const TuneTrial& trial);  // a kept record takes nothing from the budget

  std::size_t runs_made() const { return runs_made_; }
  std::size_t runs_found() const { return runs_found_; }

 private:
  std::optional<record::RunRecord> kept_record(const TuneTrial& trial) const;
  std::vector<std::string> command_of(const TuneTrial& trial) const;
  TuneOutcome outcome_of(const TuneTrial& trial, const record::RunRecord& record) const;

  TuneSetup setup_;
  const StudyFolder& folder_;
  std::stop_token stop_;
  std::size_t runs_made_ = 0, runs_found_ = 0;
};

// The machine's speeds, measured once per folder: a resumed tune must start from the same facts.
CostFacts cost_facts(const StudyFolder& folder, const TuneSpace& space);

Json config_of(const TuneSpace& space, std::size_t candidate, const std::string& about);  // for `--config`

}  // namespace trireme::lab
