#include "trireme/lab/tune/tune_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/lab/study/schedule.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

constexpr std::uint64_t kOrderSeed = 2;
constexpr std::int64_t kFewestUsualTrials = 20, kMostUsualTrials = 60, kTrialsForTwoFinalists = 32;
constexpr std::int64_t kFewestBeforeFinals = 4;
constexpr double kShareOfSpace = 0.15;
constexpr std::size_t kNarrowed = 4;  // candidates with longer trials

// Each round may start trials up to this share of the budget.
constexpr double kExploreUntil = 0.5, kNarrowUntil = 0.65;

// Relative run-to-run noise; longer runs are steadier.
constexpr double kShortNoise = 0.05, kLongNoise = 0.03;
// Exploration bonus, in standard deviations above the estimate.
constexpr double kCuriosity = 1.0;
// Of finalists the test cannot tell apart, takes the simpler one unless it seems slower by more than this.
constexpr double kNoMatter = 1.02;

// The finalists and the default.
std::size_t trials_of_finals(const TuneSettings& settings) {
  return (settings.finalists + 1) * static_cast<std::size_t>(settings.final_repeats);
}

// Of two equally fast: fewer tasks, then fewer images at a time.
auto simplicity(const WorkLayout& layout) { return std::tuple(layout.workers + layout.servers, layout.batch); }

// See search_fastest().
class TuneSearch {
 public:
  TuneSearch(const std::vector<TuneCandidate>& candidates, std::size_t default_candidate, const CostFacts& facts,
             const TuneObjective& objective, const TuneSettings& settings, RunTrial run_trial, TuneObserver& observer)
      : candidates_(candidates),
        objective_(objective),
        settings_(settings),
        run_trial_(std::move(run_trial)),
        observer_(observer),
        model_(facts),
        correction_({}),
        states_(candidates.size()) {
    result_.default_candidate = default_candidate;
    result_.chosen = default_candidate;
  }

  TuneResult run() {
    const std::size_t before = settings_.trials - trials_of_finals(settings_);
    const std::size_t narrowed = std::min(kNarrowed, before / 4);
    explore(before - narrowed);
    if (!result_.interrupted) result_.finalists = narrow(narrowed);
    result_.finalists.push_back(result_.default_candidate);
    if (!result_.interrupted) hold_finals();
    decide();
    return std::move(result_);
  }

 private:
  struct State {
    std::vector<double> step_seconds, scores;
    std::vector<TuneRound> rounds;
    int trials = 0;
    bool failed = false;
  };

  void learn() {
    std::vector<TimedLayout> timed;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      for (const double seconds : states_[i].step_seconds) timed.push_back({candidates_[i].layout, seconds});
    }
    model_.fit(timed);
    std::vector<KnownError> errors;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const double modelled = model_.step_seconds(candidates_[i].layout);
      for (std::size_t k = 0; k < states_[i].step_seconds.size(); ++k) {
        errors.push_back({.point = candidates_[i].point,
                          .error = std::log(states_[i].step_seconds[k] / modelled),
                          .noise = states_[i].rounds[k] == TuneRound::explore ? kShortNoise : kLongNoise});
      }
    }
    correction_ = Correction(std::move(errors));
  }
  // Of the score, from the model and the trials.
  double estimate(std::size_t candidate) const {
    const TuneCandidate& one = candidates_[candidate];
    return objective_.score(one.layout, model_.step_seconds(one.layout) * std::exp(correction_.at(one.point).error));
  }
  // Of all candidates.
  std::vector<double> estimates() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < candidates_.size(); ++i) all.push_back(estimate(i));
    return all;
  }
  // The next candidate worth trying: it may be the best, given its estimate and uncertainty.
  std::optional<std::size_t> most_promising(const std::function<bool(std::size_t)>& is_asked_for) const {
    std::optional<std::size_t> best;
    double best_promise = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (states_[i].trials > 0 || !is_asked_for(i)) continue;
      const double promise = estimate(i) * std::exp(kCuriosity * correction_.at(candidates_[i].point).deviation);
      if (!best || promise > best_promise) {
        best = i;
        best_promise = promise;
      }
    }
    return best;
  }
  // Starts with what the model knows least: workers, servers, and a small batch, which may suit caches. Then counts of
  // everything. Ways of exchanging, many and similar, come last, once the participants are known.
  std::optional<std::size_t> next_to_explore(std::size_t made, std::size_t trials) const {
    double largest_batch = 0;
    for (const TuneCandidate& candidate : candidates_) largest_batch = std::max(largest_batch, candidate.layout.batch);
    const auto has_workers_alone = [&](std::size_t i) {
      return candidates_[i].layout.workers > 1 && candidates_[i].layout.servers == 0 && has_plain_exchange(i);
    };
    std::optional<std::size_t> next;
    if (made == 1) next = most_promising(has_workers_alone);
    if (made == 2) next = most_promising([&](std::size_t i) { return candidates_[i].layout.servers > 0; });
    if (made == 3) {
      next = most_promising(
          [&](std::size_t i) { return has_workers_alone(i) && candidates_[i].layout.batch <= largest_batch / 4; });
    }
    if (!next && made < (trials + 1) / 2) next = most_promising([&](std::size_t i) { return has_plain_exchange(i); });
    return next ? next : most_promising([](std::size_t) { return true; });
  }
  // Same as the default's.
  bool has_plain_exchange(std::size_t candidate) const {
    const SettingPoint &point = candidates_[candidate].point, &usual = candidates_[result_.default_candidate].point;
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::holds_alternative<std::string>(point[i]) && point[i] != usual[i]) return false;
    }
    return true;
  }
  std::vector<std::size_t> by_estimate(std::vector<std::size_t> candidates) const {
    std::vector<double> scores(candidates_.size());
    for (const std::size_t candidate : candidates) scores[candidate] = estimate(candidate);
    std::ranges::stable_sort(candidates, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    return candidates;
  }
  std::vector<std::size_t> measured() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!states_[i].failed && !states_[i].scores.empty()) found.push_back(i);
    }
    return found;
  }

  // For one more trial; if not, records that in the result.
  bool has_time(double share_of_budget) {
    if (result_.interrupted) return false;
    if (!settings_.budget_seconds) return true;
    if (seconds_ + longest_seconds_ <= share_of_budget * *settings_.budget_seconds) return true;
    result_.out_of_time = true;
    return false;
  }
  void measure(std::size_t candidate, TuneRound round) {
    State& state = states_[candidate];
    const double estimated = estimate(candidate);
    const TuneTrial trial{.candidate = candidate, .repeat = ++state.trials, .round = round};
    const TuneOutcome outcome = run_trial_(trial);
    seconds_ += outcome.seconds;
    longest_seconds_ = std::max(longest_seconds_, outcome.seconds);
    if (outcome.ending == TuneOutcome::Ending::interrupted) {
      result_.interrupted = true;
      return;
    }
    if (outcome.ending == TuneOutcome::Ending::failed) {
      if (candidate == result_.default_candidate) {
        fail(outcome.error_kind, "the default configuration cannot run: {}", outcome.error);
      }
      state.failed = true;
      ++result_.failures;
      observer_.on_failure(trial, outcome.error);
      return;
    }
    const double score = objective_.score(candidates_[candidate].layout, outcome.step_seconds);
    state.step_seconds.push_back(outcome.step_seconds);
    state.scores.push_back(score);
    state.rounds.push_back(round);
    result_.samples.push_back({trial, estimated, score});
    observer_.on_sample(result_.samples.back());
    learn();
  }
  void begin(TuneRound round) {
    std::vector<std::size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    observer_.on_round(round, model_, by_estimate(std::move(all)), estimates());
  }
  void end(const std::vector<std::size_t>& ranked, std::size_t kept) {
    const auto middle = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(kept, ranked.size()));
    observer_.on_round_end({.kept = {ranked.begin(), middle}, .dropped = {middle, ranked.end()}}, estimates());
  }

  void explore(std::size_t trials) {
    begin(TuneRound::explore);
    measure(result_.default_candidate, TuneRound::explore);
    for (std::size_t made = 1; made < trials; ++made) {
      const auto next = next_to_explore(made, trials);
      if (!next || !has_time(kExploreUntil)) return;
      measure(*next, TuneRound::explore);
    }
  }
  std::vector<std::size_t> narrow(std::size_t trials) {
    std::vector<std::size_t> ranked = by_estimate(measured());
    std::erase(ranked, result_.default_candidate);  // it is in the finals anyway, against the best of the others
    end(ranked, trials);
    ranked.resize(std::min(trials, ranked.size()));
    begin(TuneRound::narrow);
    for (const std::size_t candidate : ranked) {
      if (has_time(kNarrowUntil)) measure(candidate, TuneRound::narrow);
    }
    std::erase_if(ranked, [&](std::size_t candidate) { return states_[candidate].failed; });
    ranked = by_estimate(std::move(ranked));
    end(ranked, settings_.finalists);
    ranked.resize(std::min(settings_.finalists, ranked.size()));
    return ranked;
  }
  // All once, then all again: if the machine slows down, it slows all alike.
  void hold_finals() {
    begin(TuneRound::finals);
    const std::vector<std::size_t>& finalists = result_.finalists;
    for (const ScheduledRun& run : make_schedule(finalists.size(), settings_.final_repeats, kOrderSeed)) {
      const std::size_t candidate = finalists[run.cell];
      if (states_[candidate].failed) continue;
      if (!has_time(1)) return;
      measure(candidate, TuneRound::finals);
    }
  }
  void decide() {
    std::vector<std::size_t>& finalists = result_.finalists;
    std::erase_if(finalists, [&](std::size_t candidate) { return states_[candidate].failed; });
    const bool all_ran =
        std::ranges::none_of(finalists, [&](std::size_t candidate) { return result_.finals_of(candidate).empty(); });
    if (!all_ran) finalists.clear();
    const auto speed = [&](std::size_t candidate) { return perf::median(result_.finals_of(candidate)); };
    std::ranges::stable_sort(finalists, [&](std::size_t a, std::size_t b) { return speed(a) > speed(b); });
    if (finalists.empty()) {  // no time for all finals: use the trials
      const std::vector<std::size_t> ranked = by_estimate(measured());
      if (!ranked.empty()) result_.chosen = ranked.front();
      return;
    }
    result_.chosen = finalists.front();
    std::size_t other = finalists.size() > 1 ? finalists[1] : finalists[0];
    if (other != result_.chosen) {
      const auto margin = [&] { return perf::compare(result_.finals_of(result_.chosen), result_.finals_of(other)); };
      result_.margin = margin();
      const bool is_simpler = other == result_.default_candidate ||
                              simplicity(candidates_[other].layout) < simplicity(candidates_[result_.chosen].layout);
      result_.took_simpler = is_simpler && !result_.margin->is_supported() && result_.margin->ratio < kNoMatter;
      if (result_.took_simpler) {
        std::swap(result_.chosen, other);
        result_.margin = margin();
      }
    }
    const std::vector<double> of_default = result_.finals_of(result_.default_candidate);
    if (!of_default.empty() && result_.chosen != result_.default_candidate) {
      result_.gain = perf::compare(result_.finals_of(result_.chosen), of_default);
    }
  }

  const std::vector<TuneCandidate>& candidates_;
  TuneObjective objective_;
  TuneSettings settings_;
  RunTrial run_trial_;
  TuneObserver& observer_;
  StepCostModel model_;
  Correction correction_;
  std::vector<State> states_;
  double seconds_ = 0;          // of the trials so far
  double longest_seconds_ = 0;  // of a single one
  TuneResult result_;
};

}  // namespace

std::string to_string(TuneRound round) {
  constexpr std::array<const char*, 3> kNames{"explore", "narrow", "finals"};
  return kNames.at(static_cast<std::size_t>(round));
}

std::int64_t usual_trials(std::size_t candidates) {
  const auto share = static_cast<std::int64_t>(kShareOfSpace * static_cast<double>(candidates));
  return std::clamp(share, kFewestUsualTrials, kMostUsualTrials);
}

TuneSettings settings_for(std::int64_t trials) {
  TuneSettings settings;
  // If trials are few, exploring is worth more than a second finalist.
  settings.finalists = trials < kTrialsForTwoFinalists ? 1 : 2;
  const std::int64_t fewest = kFewestBeforeFinals + static_cast<std::int64_t>(trials_of_finals(settings));
  if (trials < fewest) {
    bad_input("--trials {}: must be at least {}: {} for the search, plus finals of the best and the default", trials,
              fewest, kFewestBeforeFinals);
  }
  settings.trials = static_cast<std::size_t>(trials);
  return settings;
}

std::vector<double> TuneResult::finals_of(std::size_t candidate) const {
  std::vector<double> scores;
  for (const TuneSample& sample : samples) {
    if (sample.trial.candidate == candidate && sample.trial.round == TuneRound::finals) scores.push_back(sample.score);
  }
  return scores;
}

TuneResult search_fastest(const std::vector<TuneCandidate>& candidates, std::size_t default_candidate,
                          const CostFacts& facts, const TuneObjective& objective, const TuneSettings& settings,
                          RunTrial run_trial, TuneObserver& observer) {
  return TuneSearch(candidates, default_candidate, facts, objective, settings, std::move(run_trial), observer).run();
}

}  // namespace trireme::lab
