// Trials of `trireme tune` as processes, with their records in the folder of a study. A trial that has a record there
// is not run again: a tune that was ended is repeated from its records, and goes on where they end. Made by
// `trireme tune` for a TuneSearch.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "trireme/lab/study_folder.hpp"
#include "trireme/lab/tune_search.hpp"

namespace trireme::lab {

struct TuneSetup {
  const TuneSpace& space;
  const OptionCatalog& options;
  std::string program;           // the `trireme` binary
  double trial_seconds = 2;      // of steps, in the first round; the later ones have twice that
  double run_limit_seconds = 0;  // after which a trial has failed
  bool retry_failed = false;     // records of failures do not count; those of the default never do
  std::function<void(const TuneTrial& trial, double seconds)> while_running = {};
};

class TuneTrials {
 public:
  TuneTrials(const TuneSetup& setup, const StudyFolder& folder, std::stop_token stop)
      : setup_(setup), folder_(folder), stop_(std::move(stop)) {}

  // Of a trial that is read from its record, no seconds are taken of the budget.
  TuneOutcome operator()(const TuneTrial& trial);

  std::size_t runs_made() const { return runs_made_; }
  std::size_t runs_found() const { return runs_found_; }

 private:
  std::optional<Json> kept_record(const TuneTrial& trial) const;
  std::vector<std::string> command_of(const TuneTrial& trial) const;
  TuneOutcome outcome_of(const TuneTrial& trial, const Json& record) const;

  TuneSetup setup_;
  const StudyFolder& folder_;
  std::stop_token stop_;
  std::size_t runs_made_ = 0, runs_found_ = 0;
};

// What the machine gives, measured once for a folder: the same tune must start from the same facts when it goes on.
CostFacts cost_facts(const StudyFolder& folder, const TuneSpace& space);

// The options of one candidate for `--config`, with a word on where they come from.
Json config_of(const TuneSpace& space, std::size_t candidate, const std::string& about);

}  // namespace trireme::lab
