// Finds a fast configuration with few trials, by successive halving guided by a model: short trials of candidates that
// the model rates best or knows least, longer ones of their better half, then interleaved repeats of the finalists and
// the default, decided by a rank test. The caller supplies the trial: `tune` runs processes, tests compute a function.
// Equal results give an equal search, so an ended one can be replayed and continued.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/lab/tune/tune_space.hpp"
#include "trireme/perf/comparison.hpp"

namespace trireme::lab {

enum class TuneRound : std::uint8_t { explore, narrow, finals };
std::string to_string(TuneRound round);

struct TuneTrial {
  std::size_t candidate = 0;
  int repeat = 1;  // count for this candidate, from 1
  TuneRound round = TuneRound::explore;
};

struct TuneOutcome {
  enum class Ending : std::uint8_t { measured, failed, interrupted };
  Ending ending = Ending::measured;
  double step_seconds = 0;
  double seconds = 0;  // taken from the budget
  std::string error = {};
  ErrorKind error_kind = ErrorKind::failed;
};

struct TuneSample {
  TuneTrial trial;
  double estimate = 0, score = 0;  // before the trial and from it
};

struct TuneSettings {
  std::size_t trials = 32;  // over all rounds
  std::optional<double> budget_seconds = {};
  std::size_t finalists = 2;  // besides the default
  int final_repeats = 4;      // the minimum for a rank test to show a difference
};

std::int64_t usual_trials(std::size_t candidates);  // 15 %, but neither too few nor too many
TuneSettings settings_for(std::int64_t trials);     // Error(bad_input) if too few for any round before the finals

struct RoundEnd {
  std::vector<std::size_t> kept, dropped;  // best first
};

class TuneObserver {
 public:
  virtual ~TuneObserver() = default;
  // The model's view: the candidates in its order, with estimated scores.
  virtual void on_round(TuneRound /*round*/, const StepCostModel& /*model*/, const std::vector<std::size_t>& /*order*/,
                        const std::vector<double>& /*estimates*/) {}
  virtual void on_sample(const TuneSample& /*sample*/) {}
  virtual void on_failure(const TuneTrial& /*trial*/, const std::string& /*error*/) {}
  virtual void on_round_end(const RoundEnd& /*end*/, const std::vector<double>& /*estimates*/) {}
};

struct TuneResult {
  std::vector<TuneSample> samples;
  std::size_t failures = 0;
  std::size_t default_candidate = 0;
  std::size_t chosen = 0;                                      // the default if nothing better was found
  std::vector<std::size_t> finalists;                          // best first, including the default if it was run
  std::optional<perf::Comparison> gain;                        // of the chosen over the default, from the finals
  std::optional<perf::Comparison> margin;                      // over the other finalist; nothing: there was none
  bool took_simpler = false;                                   // among finalists that the test cannot tell apart
  bool interrupted = false, out_of_time = false;               // out_of_time: the budget prevented trials
  std::vector<double> finals_of(std::size_t candidate) const;  // scores
};

using RunTrial = std::function<TuneOutcome(const TuneTrial&)>;

// If the default cannot run: Error(failed), or bad_input if it was refused. Keeps nothing beyond the call.
TuneResult search_fastest(const std::vector<TuneCandidate>& candidates, std::size_t default_candidate,
                          const CostFacts& facts, const TuneObjective& objective, const TuneSettings& settings,
                          RunTrial run_trial, TuneObserver& observer);

}  // namespace trireme::lab
