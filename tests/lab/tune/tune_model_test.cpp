// What `tune` searches and what it thinks: the space on machines of several sizes, the cost model and its correction.
#include "trireme/lab/tune/tune_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/lab/tune/tune_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/tune/tune_search.hpp"

namespace trireme::lab {
namespace {

TuneSpace make_space(const TuneRequest& request, int cores = 4, TuneAbilities abilities = {true, true}) {
  return make_tune_space(request, testkit::tune_options(), {.cores = cores, .hardware_threads = cores}, abilities);
}

TEST(TuneSpace, HasOnlyWhatMakesSenseOnTheMachine) {
  const TuneSpace space = make_space({.model = "lenet"});
  for (std::size_t i = 0; i < space.cells.size(); ++i) {
    const WorkLayout& layout = space.candidates[i].layout;
    SCOPED_TRACE(cell_text(space.cells[i]));
    EXPECT_LE(layout.workers * layout.threads, 4);
    EXPECT_LE(layout.servers, layout.workers);
    const bool sums = layout.workers > 1 && layout.servers == 0;
    const bool is_plain = space.cells[i].varied["all-reduce"] == "auto" && space.cells[i].varied["bucket-mb"] == "auto";
    EXPECT_TRUE(sums || is_plain) << "a setting without effect would be tried twice";
  }
  const WorkLayout& plain = space.candidates[space.default_cell].layout;
  EXPECT_EQ(plain.workers, 1);
  EXPECT_EQ(plain.servers, 0);
  EXPECT_EQ(plain.threads, 4);
  EXPECT_EQ(plain.batch, 32) << "the network's own";

  for (const TuneCandidate& alone : make_space({.model = "lenet"}, 4, {false, false}).candidates)
    EXPECT_EQ(alone.layout.workers, 1);
  for (const TuneCandidate& one : make_space({.model = "lenet", .workers_up_to = 2}).candidates)
    EXPECT_LE(one.layout.workers, 2);
  const TuneSpace inference = make_space({.model = "lenet", .set = {"forward-only=true"}});
  EXPECT_FALSE(inference.cells.front().varied.contains("all-reduce"));
  EXPECT_EQ(inference.gradient_bytes, 0);
  EXPECT_EQ(make_space({.model = "lenet", .set = {"forward_only=true"}}).cells.size(), inference.cells.size());
  const TuneSpace rings = make_space({.model = "lenet", .set = {"all-reduce=ring"}});
  EXPECT_EQ(rings.candidates[rings.default_cell].layout.workers, 1) << "what is set of workers leaves one alone";
}

// All values of all options together are more than a million there.
TEST(TuneSpace, IsMadeOnMachinesWithManyCores) {
  const TuneSpace space = make_space({.model = "lenet"}, 64);
  for (const TuneCandidate& candidate : space.candidates) {
    EXPECT_LE(candidate.layout.workers * candidate.layout.threads, 64);
  }
}

TEST(TuneSpace, HasStagesThatTheWorkersAllow) {
  std::map<double, std::set<std::string>> found;  // by workers
  const TuneSpace space = make_space({.model = "lenet"});
  for (std::size_t i = 0; i < space.cells.size(); ++i) {
    const StudyCell& cell = space.cells[i];
    const std::string parallel = value_text(*find(cell.configuration, "parallel"));
    const WorkLayout& layout = space.candidates[i].layout;
    found[layout.workers].insert(value_text(cell.varied["parallel"]));
    if (parallel == "data") continue;
    EXPECT_EQ(layout.servers, 0) << cell_text(cell);
    EXPECT_EQ(cell.varied["all-reduce"], "auto") << cell_text(cell);
  }
  EXPECT_EQ(found[1], std::set<std::string>{"data"});
  EXPECT_EQ(found[2], (std::set<std::string>{"data", "pipeline:2", "pipeline:2 zb-h1"}));
  EXPECT_EQ(found[4],
            (std::set<std::string>{"data", "pipeline:2", "pipeline:2 zb-h1", "pipeline:4", "pipeline:4 zb-h1"}));

  const TuneSpace chosen =
      make_space({.model = "lenet", .set = {"workers=2", "parallel=pipeline:2", "schedule=gpipe", "micro-batches=4"}});
  for (const StudyCell& cell : chosen.cells) {
    EXPECT_EQ(*find(cell.configuration, "parallel"), "pipeline:2");
    EXPECT_EQ(*find(cell.configuration, "schedule"), "gpipe");
    EXPECT_EQ(*find(cell.configuration, "micro-batches"), 4);
  }
}

TEST(TuneSpace, SharesAGivenBatch) {
  const TuneSpace space = make_space(
      {.model = "lenet", .objective = {.goal = TuneObjective::Goal::images_per_second_at_batch, .effective_batch = 6}});
  std::set<double> workers;
  for (const TuneCandidate& candidate : space.candidates) {
    EXPECT_EQ(candidate.layout.images(), 6);
    workers.insert(candidate.layout.workers);
  }
  EXPECT_EQ(workers, (std::set<double>{1, 2})) << "four workers do not share six images";
}

TEST(TuneSpace, ObjectivesCountWhatTheyName) {
  const WorkLayout layout{.workers = 2, .batch = 40};
  EXPECT_DOUBLE_EQ(TuneObjective{}.score(layout, 0.5), 160);
  const TuneObjective epoch{.goal = TuneObjective::Goal::epoch_time, .samples = 100};
  EXPECT_DOUBLE_EQ(epoch.score(layout, 0.5), 100) << "two steps, of which the second is not full";
  EXPECT_EQ(epoch.text(100), "1 s per epoch");
}

TEST(TuneSpace, RefusesWhatCannotBe) {
  using Goal = TuneObjective::Goal;
  EXPECT_THROW(make_space({.model = "lenet", .objective = {.goal = Goal::images_per_second_at_batch}}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .objective = {.goal = Goal::epoch_time}}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .objective = {.samples = 5}}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .batches = {0}}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .workers_up_to = 0}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .set = {"batch-sise=4"}}), Error);
  EXPECT_THROW(make_space({.model = "no-such"}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .set = {"model=mnist"}}), Error);
  EXPECT_THROW(make_space({.model = "lenet", .set = {"max_seconds=3"}}), Error);
  const TuneObjective at_six{.goal = Goal::images_per_second_at_batch, .effective_batch = 6};
  EXPECT_THROW(make_space({.model = "lenet", .objective = at_six, .set = {"batch-size=4"}}), Error);
}

constexpr CostFacts kFacts{
    .flops_per_image = 1e9, .gradient_bytes = 10e6, .flops_per_second = 50e9, .bytes_per_second = 10e9};

TEST(StepCostModel, ComesNearTheTermsThatTimesWereMadeFrom) {
  std::vector<TimedLayout> trials;
  const auto truth = [](const WorkLayout& layout) {
    const double exchange = layout.workers > 1 ? 0.05 : 0;
    return layout.batch * 0.1 / layout.threads + exchange;
  };
  for (const double batch : {1.0, 4.0, 16.0}) {
    for (const double threads : {1.0, 2.0}) {
      const WorkLayout layout{.workers = 3 - threads, .threads = threads, .batch = batch, .bucket_bytes = 1e6};
      trials.push_back({layout, truth(layout)});
    }
  }
  StepCostModel model(kFacts);
  model.fit(trials);
  for (const TimedLayout& trial : trials) {
    EXPECT_NEAR(model.step_seconds(trial.layout), trial.step_seconds, 0.25 * trial.step_seconds);
  }
  const WorkLayout unseen{.threads = 2, .batch = 64};
  EXPECT_NEAR(model.step_seconds(unseen), truth(unseen), 0.25 * truth(unseen));
}

TEST(StepCostModel, KnowsWhatHelpsBeforeAnyTrial) {
  const StepCostModel model(kFacts);
  const auto speed = [&](const WorkLayout& layout) { return layout.images() / model.step_seconds(layout); };
  EXPECT_GT(speed({.threads = 2, .batch = 16}), speed({.threads = 1, .batch = 16}));
  EXPECT_GT(speed({.threads = 2, .batch = 16}), speed({.threads = 2, .batch = 4}));
  EXPECT_LT(speed({.workers = 4, .servers = 1, .batch = 16}), speed({.workers = 4, .servers = 4, .batch = 16}));
  EXPECT_LT(speed({.workers = 2, .batch = 16, .bucket_bytes = 1e4}),
            speed({.workers = 2, .batch = 16, .bucket_bytes = 1e7}));
}

TEST(Correction, LearnsMostFromWhatIsNear) {
  const Correction none({});
  EXPECT_EQ(none.at({2.0, "ring"}).error, 0);
  const Correction correction({{.point = {2.0, "ring"}, .error = 0.3, .noise = 0.01}});
  const auto same = correction.at({2.0, "ring"}), near = correction.at({4.0, "ring"}),
             far = correction.at({64.0, "tree"});
  EXPECT_NEAR(same.error, 0.3, 0.01);
  EXPECT_LT(same.deviation, 0.02);
  EXPECT_GT(near.error, far.error);
  EXPECT_GT(far.error, 0);
  EXPECT_LT(near.deviation, far.deviation);
  EXPECT_LT(far.deviation, none.at({64.0, "tree"}).deviation);
}

}  // namespace
}  // namespace trireme::lab
