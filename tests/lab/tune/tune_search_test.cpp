// The search over artificial machines: functions that say how long a step takes, with noise, in place of trials.
#include "trireme/lab/tune/tune_search.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/lab/tune/tune_options.hpp"
#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

constexpr double kNoise = 0.03;

// Of a network on a machine: what the model cannot know of it.
struct Surface {
  std::string name;
  std::function<double(const StudyCell& cell, const WorkLayout& layout)> step_seconds;
};

bool is(const StudyCell& cell, const std::string& option, const std::string& value) {
  const Json* found = find(cell.configuration, option);
  return found != nullptr && value_text(*found) == value;
}

double compute(const WorkLayout& layout, double per_image, double unshared) {
  return 1e-3 + layout.batch * per_image * (1 / layout.threads + unshared * (1 - 1 / layout.threads));
}

std::vector<Surface> surfaces() {
  return {
      {"processes beat threads, and one all-reduce the others",
       [](const StudyCell& cell, const WorkLayout& layout) {
         const double exchange = layout.workers > 1 ? (is(cell, "all-reduce", "tree") ? 2e-3 : 8e-3) : 0;
         return compute(layout, 4e-3, 0.3) + exchange + (layout.servers > 0 ? 0.02 : 0);
       }},
      {"threads beat processes, whose cores share a cache",
       [](const StudyCell&, const WorkLayout& layout) {
         return compute(layout, 4e-3, 0.02) * (1 + 0.1 * (layout.workers - 1)) + (layout.workers > 1 ? 0.01 : 0);
       }},
      {"a batch that fits the cache",
       [](const StudyCell& cell, const WorkLayout& layout) {
         const double spill = 1 + 0.4 / (1 + std::exp(-(layout.images() - 40) / 4));
         const bool by_memory = is(cell, "all-reduce", "hierarchical") || is(cell, "all-reduce", "auto");
         return (compute(layout, 2e-3, 0.1) + 5e-3) * spill + (layout.workers > 1 && !by_memory ? 4e-3 : 0);
       }},
      {"servers beat all-reduce",
       [](const StudyCell&, const WorkLayout& layout) {
         const double exchange = layout.workers == 1 ? 0 : layout.servers > 0 ? 0.01 / layout.servers : 0.04;
         return compute(layout, 3e-3, 0.5) + exchange;
       }},
      {"buckets matter, and their best size depends on the algorithm",
       [](const StudyCell& cell, const WorkLayout& layout) {
         const double best = is(cell, "all-reduce", "ring") ? 4e6 : 1e6;
         const double off = std::abs(std::log2(layout.bucket_bytes / best));
         const double exchange =
             layout.workers > 1 ? 3e-3 * (1 + off) + (is(cell, "all-reduce", "ring") ? 0 : 5e-3) : 0;
         return compute(layout, 3e-3, 0.25) + exchange;
       }},
      {"two threads that are slower than one",
       [](const StudyCell&, const WorkLayout& layout) {
         return (5e-3 + layout.batch * 1e-3) * (layout.threads > 1 ? 1.3 : 1) + (layout.workers > 1 ? 3e-3 : 0);
       }},
  };
}

class ArtificialMachine {
 public:
  ArtificialMachine(const TuneSpace& space, const Surface& surface, unsigned seed, double noise = kNoise)
      : space_(space), surface_(surface), random_(seed), noise_(0, noise) {}

  double true_score(std::size_t candidate) const {
    const WorkLayout& layout = space_.candidates[candidate].layout;
    return layout.images() / surface_.step_seconds(space_.cells[candidate], layout);
  }
  double best_score() const {
    double best = 0;
    for (std::size_t i = 0; i < space_.cells.size(); ++i) best = std::max(best, true_score(i));
    return best;
  }
  TuneOutcome operator()(const TuneTrial& trial) {
    ++trials;
    const WorkLayout& layout = space_.candidates[trial.candidate].layout;
    // Others on the machine can only make a run slower.
    const double noise = std::exp(std::abs(noise_(random_)));
    return {.step_seconds = surface_.step_seconds(space_.cells[trial.candidate], layout) * noise, .seconds = 1};
  }

  int trials = 0;

 private:
  const TuneSpace& space_;
  const Surface& surface_;
  std::mt19937 random_;
  std::normal_distribution<double> noise_;
};

CostFacts facts_of(const TuneSpace& space) {
  return {.flops_per_image = space.flops_per_image,
          .gradient_bytes = space.gradient_bytes,
          .flops_per_second = 60e9,
          .bytes_per_second = 15e9};
}

class TuneSearchTest : public testing::Test {
 protected:
  TuneResult search(const TuneSpace& space, RunTrial run_trial, TuneSettings settings) {
    return search_fastest(space.candidates, space.default_cell, facts_of(space), {}, settings, std::move(run_trial),
                          observer_);
  }
  static TuneSpace space_of(const std::string& model, int cores) {
    return make_tune_space({.model = model, .batches = {4, 8, 16, 32, 64}}, testkit::tune_options(),
                           {.cores = cores, .hardware_threads = cores}, {true, true});
  }

  TuneObserver observer_;
};

TEST_F(TuneSearchTest, ComesWithinFivePercentOfTheBestWithFifteenPercentOfTheTrials) {
  struct Case {
    const char* model;
    int cores;
    unsigned seeds;
  };
  for (const auto& [model, cores, seeds] : {Case{"lenet", 2, 5}, Case{"resnet20", 4, 3}, Case{"alexnet_cifar", 8, 1}}) {
    const TuneSpace space = space_of(model, cores);
    for (const Surface& surface : surfaces()) {
      for (unsigned seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(fmt::format("{} on {} cores, {}, seed {}", model, cores, surface.name, seed));
        ArtificialMachine machine(space, surface, seed);
        const TuneResult result = search(space, std::ref(machine), settings_for(usual_trials(space.cells.size())));
        EXPECT_LE(machine.trials, 0.15 * static_cast<double>(space.cells.size()));
        EXPECT_GE(machine.true_score(result.chosen), 0.95 * machine.best_score())
            << cell_text(space.cells[result.chosen]);
      }
    }
  }
}

TEST_F(TuneSearchTest, ClaimsAGainOnlyWhereThereIsOne) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface flat{"all alike", [](const StudyCell&, const WorkLayout& layout) { return layout.images() * 1e-3; }};
  int claims = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ArtificialMachine machine(space, flat, seed);
    const TuneResult result = search(space, std::ref(machine), settings_for(usual_trials(space.cells.size())));
    claims += result.gain && result.gain->is_supported() ? 1 : 0;
  }
  EXPECT_LE(claims, 4) << "one in twenty is what the test allows";

  const Surface servers = surfaces()[3];
  ArtificialMachine machine(space, servers, 1);
  const TuneResult result = search(space, std::ref(machine), settings_for(usual_trials(space.cells.size())));
  ASSERT_TRUE(result.gain);
  EXPECT_EQ(result.gain->verdict, perf::Verdict::larger);
  const double gain = machine.true_score(result.chosen) / machine.true_score(space.default_cell);
  EXPECT_NEAR(result.gain->ratio, gain, 0.05 * gain);
  EXPECT_EQ(result.finals_of(space.default_cell).size(), 4u);
}

TEST_F(TuneSearchTest, GoesOnFromItsTrialsWhereItWasEnded) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface = surfaces()[0];
  const TuneSettings settings = settings_for(usual_trials(space.cells.size()));
  std::map<std::pair<std::size_t, int>, TuneOutcome> kept;
  ArtificialMachine machine(space, surface, 7);
  const auto run_until = [&](int last) {
    return [&, last](const TuneTrial& trial) -> TuneOutcome {
      const std::pair name(trial.candidate, trial.repeat);
      if (kept.contains(name)) return kept[name];
      if (machine.trials == last) return {.ending = TuneOutcome::Ending::interrupted};
      return kept[name] = machine(trial);
    };
  };
  std::size_t samples = 0;
  for (const int last : {1, 8, 15}) {  // in every round
    const TuneResult result = search(space, run_until(last), settings);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.samples.size(), static_cast<std::size_t>(last));
    samples = result.samples.size();
  }
  const TuneResult whole = search(space, run_until(-1), settings);
  EXPECT_FALSE(whole.interrupted);
  EXPECT_GT(whole.samples.size(), samples);
  EXPECT_EQ(whole.samples.size(), static_cast<std::size_t>(machine.trials)) << "nothing was run twice";

  ArtificialMachine same(space, surface, 7);
  const TuneResult at_once = search(space, std::ref(same), settings);
  EXPECT_EQ(at_once.chosen, whole.chosen);
  EXPECT_EQ(at_once.samples.size(), whole.samples.size());
}

TEST_F(TuneSearchTest, KeepsToItsBudgetAndLeavesTimeForFinals) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface = surfaces()[0];
  for (const double budget : {1.0, 5.0, 14.0, 1000.0}) {
    ArtificialMachine machine(space, surface, 3);
    TuneSettings settings = settings_for(usual_trials(space.cells.size()));
    settings.budget_seconds = budget;
    const TuneResult result = search(space, std::ref(machine), settings);
    EXPECT_LE(machine.trials, budget);
    EXPECT_EQ(result.out_of_time, budget < 100) << budget;
    EXPECT_TRUE(budget < 10 || !result.finals_of(space.default_cell).empty()) << budget;
  }
}

TEST_F(TuneSearchTest, LeavesOutWhatFails) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface = surfaces()[0];
  ArtificialMachine machine(space, surface, 3);
  const auto without_launch = [&](const TuneTrial& trial) -> TuneOutcome {
    if (space.candidates[trial.candidate].layout.workers > 1) {
      return {.ending = TuneOutcome::Ending::failed, .seconds = 1, .error = "no mpirun"};
    }
    return machine(trial);
  };
  const TuneResult result = search(space, without_launch, settings_for(usual_trials(space.cells.size())));
  EXPECT_GT(result.failures, 0u);
  EXPECT_EQ(space.candidates[result.chosen].layout.workers, 1);
  const auto nothing_works = [](const TuneTrial&) -> TuneOutcome {
    return {.ending = TuneOutcome::Ending::failed, .error = "no memory"};
  };
  EXPECT_THROW(search(space, nothing_works, {}), Error);
}

TEST_F(TuneSearchTest, AFinalistThatFailsIsNotChosen) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface = surfaces()[0];
  ArtificialMachine machine(space, surface, 3);
  const auto dies_later = [&](const TuneTrial& trial) -> TuneOutcome {
    if (trial.round == TuneRound::finals && trial.candidate != space.default_cell && trial.repeat > 3) {
      return {.ending = TuneOutcome::Ending::failed, .seconds = 1, .error = "killed"};
    }
    return machine(trial);
  };
  const TuneResult result = search(space, dies_later, settings_for(20));
  EXPECT_GT(result.failures, 0u);
  EXPECT_EQ(result.chosen, space.default_cell);
}

TEST_F(TuneSearchTest, FinalsThatWereCutShortDecideNothing) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface = surfaces()[0];
  ArtificialMachine machine(space, surface, 3, 0);
  bool default_was_in_finals = false;
  const auto ends_after_one = [&](const TuneTrial& trial) -> TuneOutcome {
    if (trial.round == TuneRound::finals && (default_was_in_finals || trial.candidate != space.default_cell))
      return {.ending = TuneOutcome::Ending::interrupted};
    default_was_in_finals = default_was_in_finals || trial.round == TuneRound::finals;
    return machine(trial);
  };
  const TuneResult result = search(space, ends_after_one, settings_for(20));
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.finalists.empty());
  EXPECT_NE(result.chosen, space.default_cell);  // others were faster in their trials
}

TEST_F(TuneSearchTest, TheDefaultHasAnOpponentThoughItLooksBest) {
  const TuneSpace space = space_of("lenet", 2);
  const Surface surface{"the default is best", [&](const StudyCell& cell, const WorkLayout& layout) {
                          return layout.images() * (&cell == &space.cells[space.default_cell] ? 1e-3 : 2e-3);
                        }};
  ArtificialMachine machine(space, surface, 3);
  const TuneResult result = search(space, std::ref(machine), settings_for(12));
  EXPECT_EQ(result.chosen, space.default_cell);
  EXPECT_EQ(result.finalists.size(), 2u);
}

TEST_F(TuneSearchTest, MakesNoMoreTrialsThanAskedFor) {
  const TuneSpace space = space_of("resnet20", 4);
  const Surface surface = surfaces()[0];
  for (const std::int64_t trials : {12, 31, 32, 50}) {
    ArtificialMachine machine(space, surface, 3);
    search(space, std::ref(machine), settings_for(trials));
    EXPECT_EQ(machine.trials, trials);
  }
  EXPECT_THROW(settings_for(11), Error);
  EXPECT_THROW(settings_for(-1), Error);
}

}  // namespace
}  // namespace trireme::lab
