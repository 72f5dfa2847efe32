// Finds a fast configuration among many with few trials, by successive halving under a model: short trials of those
// that the model thinks best or knows least about, longer ones of the better half of these, and interleaved repeats of
// the finalists and of the default, between which a rank test decides. What a trial is, is told to it: `tune` runs
// processes, tests compute a function. The same results give the same search, so one that was ended is repeated from
// what it has left, and goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/lab/tune_space.hpp"
#include "trireme/perf/comparison.hpp"

namespace trireme::lab {

enum class TuneRound : std::uint8_t { explore, narrow, finals };
std::string to_string(TuneRound round);

struct TuneTrial {
  std::size_t candidate = 0;
  int repeat = 1;  // the how manyeth of this candidate
  TuneRound round = TuneRound::explore;
};

struct TuneOutcome {
  enum class Ending : std::uint8_t { measured, failed, interrupted };
  Ending ending = Ending::measured;
  double step_seconds = 0;
  double seconds = 0;  // that this took of the budget
  std::string error = {};
  ErrorKind error_kind = ErrorKind::failed;
};

struct TuneSample {
  TuneTrial trial;
  double estimate = 0, score = 0;  // before it and by it
};

struct TuneSettings {
  std::size_t trials = 32;  // of all rounds together
  std::optional<double> budget_seconds = {};
  std::size_t finalists = 2;  // beside the default
  int final_repeats = 4;      // the fewest by which a rank test can show a difference
};

// 15 % of the configurations, though never too few to tell anything, nor more than one would wait for.
std::int64_t usual_trials(std::size_t candidates);
// Error(bad_input) where these are too few for finals and anything before them.
TuneSettings settings_for(std::int64_t trials);

struct RoundEnd {
  TuneRound round = TuneRound::explore;
  std::vector<std::size_t> kept, dropped;  // best first
};

class TuneObserver {
 public:
  virtual ~TuneObserver() = default;
  // What the model thinks: the candidates in its order, with their estimated scores.
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
  std::size_t chosen = 0;                                      // the default where nothing better was found
  std::vector<std::size_t> finalists;                          // best first, the default among them where it was run
  std::optional<perf::Comparison> gain;                        // of the chosen over the default, by the finals
  std::optional<perf::Comparison> margin;                      // over the other finalist; nothing: there was none
  bool took_simpler = false;                                   // of finalists that the test cannot tell apart
  bool interrupted = false, out_of_time = false;               // the budget has cost trials
  std::vector<double> finals_of(std::size_t candidate) const;  // scores
};

class TuneSearch {
 public:
  using RunTrial = std::function<TuneOutcome(const TuneTrial&)>;

  TuneSearch(const std::vector<TuneCandidate>& candidates, std::size_t default_candidate, const CostFacts& facts,
             const TuneObjective& objective, const TuneSettings& settings, RunTrial run_trial, TuneObserver& observer);

  // Error(failed), or bad_input where it was refused, if the default cannot be run: then nothing can.
  TuneResult run();

 private:
  struct State {
    std::vector<double> step_seconds, scores;
    std::vector<TuneRound> rounds;
    int trials = 0;
    bool failed = false;
  };

  void learn();
  double estimate(std::size_t candidate) const;  // of the score, by the model and the trials
  std::vector<double> estimates() const;         // of all candidates
  // What is worth trying next: what may be best, by what is thought of it and how little is known.
  std::optional<std::size_t> most_promising(const std::function<bool(std::size_t)>& is_asked_for) const;
  std::optional<std::size_t> next_to_explore(std::size_t made, std::size_t trials) const;
  bool has_plain_exchange(std::size_t candidate) const;  // as the default has it
  std::vector<std::size_t> by_estimate(std::vector<std::size_t> candidates) const;
  std::vector<std::size_t> measured() const;

  bool has_time(double share_of_budget);  // for one more trial; where not, the result says so
  void measure(std::size_t candidate, TuneRound round);
  void begin(TuneRound round);
  void end(TuneRound round, const std::vector<std::size_t>& ranked, std::size_t kept);

  void explore(std::size_t trials);
  std::vector<std::size_t> narrow(std::size_t trials);
  void hold_finals();
  void decide();

  const std::vector<TuneCandidate>& candidates_;
  TuneObjective objective_;
  TuneSettings settings_;
  RunTrial run_trial_;
  TuneObserver& observer_;
  StepCostModel model_;
  Correction correction_;
  std::vector<State> states_;
  double seconds_ = 0;          // of the trials so far
  double longest_seconds_ = 0;  // of one of them
  TuneResult result_;
};

}  // namespace trireme::lab
