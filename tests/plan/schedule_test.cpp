// What a step does beside computing, for every way that replicas agree.
#include "trireme/plan/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/plan/stages.hpp"

namespace trireme {
namespace {

using Steps = std::vector<Step>;

// Two layers, each with a bucket of its own: the second layer's gradients are complete first.
struct TwoLayers {
  explicit TwoLayers(bool scaled = false) {
    const Tensor x = placeholder(graph, {2, 3}, "x");
    first = variable(graph, {4, 3}, op::Initializer::constant(1), "first");
    second = variable(graph, {5, 4}, op::Initializer::constant(1), "second");
    const Tensor loss = reduce_mean(square(fully_connected(relu(fully_connected(x, first)), second)));
    const Tensor rate = placeholder(graph, {}, "rate");
    std::optional<LossScale> scale;
    if (scaled) scale = add_loss_scale(graph);
    const auto rule = [](Tensor) { return optimizer_rule(op::OptimizerKind::sgd); };
    fetches = minimize(loss, RuleFor(rule), rate, {}, scale ? &*scale : nullptr);
    fetches.push_back(loss);
    CompileOptions options;
    options.update_bytes = 1;  // every variable by itself
    VariableLayouts layouts;
    program = compile(graph, fetches, *backend, options, layouts);
  }

  Schedule schedule(const GradientOptions& options, const RunPlace& place = {}, bool collects = false) const {
    return schedule_run(program, options, place, collects);
  }
  // Without instructions that are not updates.
  Steps beside(const Schedule& schedule) const {
    Steps steps;
    for (const Step& step : schedule.steps) {
      const bool update = step.action == Action::compute && applies_gradients(program.instructions[step.index]);
      if (update) steps.push_back({Action::compute, bucket_of(schedule, step.index)});
      if (step.action != Action::compute) steps.push_back(step);
    }
    return steps;
  }
  static int bucket_of(const Schedule& schedule, int instruction) {
    return static_cast<int>(std::find(schedule.updates.begin(), schedule.updates.end(), instruction) -
                            schedule.updates.begin());
  }
  std::int64_t place(const Schedule& schedule, Step step) const {
    return std::find(schedule.steps.begin(), schedule.steps.end(), step) - schedule.steps.begin();
  }

  Graph graph;
  std::shared_ptr<Backend> backend = make_backend("reference");
  Tensor first, second;
  std::vector<Tensor> fetches;
  Program program;
};

using enum Action;

TEST(Schedule, AloneUpdatesStandInTheProgramsPlaces) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({});
  EXPECT_EQ(two.beside(schedule), (Steps{{compute, 0}, {compute, 1}}));
  EXPECT_EQ(schedule.steps.size(),
            static_cast<std::size_t>(std::count_if(two.program.instructions.begin(), two.program.instructions.end(),
                                                   [](const Instruction& instruction) { return !instruction.once; })));
}

TEST(Schedule, ReducedBucketsStartEarlyAndAreFinishedAtTheEnd) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({.exchange = Exchange::reduce});
  EXPECT_EQ(two.beside(schedule), (Steps{{start, 0}, {start, 1}, {wait, 0}, {compute, 0}, {wait, 1}, {compute, 1}}));
  ASSERT_EQ(schedule.finishes.size(), 2u);
  EXPECT_EQ(schedule.steps[schedule.finishes[0].first], (Step{wait, 0}));
  EXPECT_EQ(schedule.finishes[0].last, schedule.finishes[1].first);
  // Backward of the first layer runs beside the transfer of the second one's gradients.
  EXPECT_GT(two.place(schedule, {start, 1}), two.place(schedule, {start, 0}) + 1);
}

// Every replica applies its slice of the mean: no update of the program runs.
TEST(Schedule, ASliceIsAppliedOnceItIsSummed) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({.exchange = Exchange::shard});
  EXPECT_EQ(two.beside(schedule), (Steps{{scatter, 0}, {gather, 0}, {scatter, 1}, {gather, 1}, {wait, 0}, {wait, 1}}));
  EXPECT_GT(two.place(schedule, {scatter, 1}), two.place(schedule, {gather, 0}) + 1);
  // Clipping needs all gradients everywhere.
  EXPECT_EQ(two.beside(two.schedule({.exchange = Exchange::shard, .accumulate = 2, .clip_norm = 1})),
            (Steps{{accumulate, 0},
                   {start, 0},
                   {accumulate, 1},
                   {start, 1},
                   {wait, 0},
                   {wait, 1},
                   {transform, 0},
                   {gather, 0},
                   {gather, 1},
                   {wait, 0},
                   {wait, 1}}));
  const Steps second = two.beside(two.schedule({.exchange = Exchange::shard}, {.group = 1, .groups = 2}));
  EXPECT_TRUE(
      std::ranges::all_of(second, [](const Step& step) { return step.action == merge || step.action == barrier; }));
}

TEST(Schedule, ServedValuesAreWaitedForBeforeTheirFirstUse) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({.exchange = Exchange::serve});
  EXPECT_EQ(two.beside(schedule), (Steps{{wait, 1}, {wait, 0}, {start, 0}, {start, 1}}));
  EXPECT_TRUE(schedule.finishes.empty());
}

// Gradients that are applied for themselves are clipped for themselves.
TEST(Schedule, WhatServersApplyOneByOneIsTransformedBeforeItLeaves) {
  const TwoLayers two;
  const GradientOptions options{.exchange = Exchange::serve_each, .accumulate = 2, .clip_norm = 1};
  EXPECT_EQ(two.beside(two.schedule(options)),
            (Steps{{wait, 1}, {wait, 0}, {accumulate, 0}, {accumulate, 1}, {transform, 0}, {start, 0}, {start, 1}}));
  EXPECT_EQ(two.beside(two.schedule({.exchange = Exchange::serve_each, .clip_norm = 1}, {.on_host = false})),
            (Steps{{wait, 1},
                   {upload, 1},
                   {wait, 0},
                   {upload, 0},
                   {download, 0},
                   {download, 1},
                   {transform, 0},
                   {start, 0},
                   {start, 1}}));
  EXPECT_EQ(two.beside(two.schedule(options, {}, true)),
            (Steps{{wait, 1}, {wait, 0}, {accumulate, 0}, {accumulate, 1}}));
  // The first group does it for all.
  const Steps first = two.beside(two.schedule(options, {.group = 0, .groups = 2}));
  const Steps second = two.beside(two.schedule(options, {.group = 1, .groups = 2}));
  EXPECT_EQ(Steps(first.end() - 3, first.end()), (Steps{{transform, 0}, {start, 0}, {start, 1}}));
  EXPECT_EQ(std::count(first.begin(), first.end(), Step{barrier, 0}),
            std::count(second.begin(), second.end(), Step{barrier, 0}));
  EXPECT_EQ(std::count(second.begin(), second.end(), Step{transform, 0}), 0);
}

TEST(Schedule, CollectingRunsOnlyAccumulate) {
  const TwoLayers two;
  const GradientOptions options{.exchange = Exchange::reduce, .accumulate = 2};
  EXPECT_EQ(two.beside(two.schedule(options, {}, true)), (Steps{{accumulate, 0}, {accumulate, 1}}));
  EXPECT_EQ(
      two.beside(two.schedule(options)),
      (Steps{
          {accumulate, 0}, {start, 0}, {accumulate, 1}, {start, 1}, {wait, 0}, {compute, 0}, {wait, 1}, {compute, 1}}));
}

TEST(Schedule, ClippingComesAfterAllTransfersAndBeforeAllUpdates) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({.exchange = Exchange::reduce, .clip_norm = 1});
  EXPECT_EQ(two.beside(schedule),
            (Steps{{start, 0}, {start, 1}, {wait, 0}, {wait, 1}, {transform, 0}, {compute, 0}, {compute, 1}}));
  EXPECT_TRUE(schedule.finishes.empty());
}

// On a device, the host adds up a micro-batch's gradients when those of the next arrive.
TEST(Schedule, MicroBatchesAreAddedUpBesideADevice) {
  TwoLayers two;
  CompileOptions options;
  options.stages = std::make_shared<const StageOptions>(
      StageOptions{.cuts = {}, .order = make_pipeline_order(PipelineKind::gpipe, {.micro_batches = 3})});
  VariableLayouts layouts;
  two.program = compile(two.graph, two.fetches, *two.backend, options, layouts);
  const GradientOptions three{.accumulate = 3};
  EXPECT_EQ(two.beside(two.schedule(three)), (Steps{{accumulate, 0}, {accumulate, 0}, {accumulate, 0}, {compute, 0}}));
  EXPECT_EQ(two.beside(two.schedule(three, {.on_host = false})), (Steps{{download, 0},
                                                                        {accumulate, 0},
                                                                        {download, 0},
                                                                        {accumulate, 0},
                                                                        {download, 0},
                                                                        {accumulate, 0},
                                                                        {upload, 0},
                                                                        {compute, 0}}));
}

TEST(Schedule, ADeviceIsGivenAllWorkBeforeTheHostWaits) {
  const TwoLayers two;
  const Schedule schedule = two.schedule({.exchange = Exchange::reduce}, {.on_host = false});
  EXPECT_EQ(two.beside(schedule), (Steps{{download, 0},
                                         {download, 1},
                                         {start, 0},
                                         {start, 1},
                                         {wait, 0},
                                         {upload, 0},
                                         {compute, 0},
                                         {wait, 1},
                                         {upload, 1},
                                         {compute, 1}}));
  const Schedule served = two.schedule({.exchange = Exchange::serve}, {.on_host = false});
  EXPECT_EQ(
      two.beside(served),
      (Steps{{wait, 1}, {upload, 1}, {wait, 0}, {upload, 0}, {download, 0}, {download, 1}, {start, 0}, {start, 1}}));
  const Schedule among = two.schedule({.exchange = Exchange::reduce_on_device}, {.on_host = false});
  EXPECT_EQ(two.beside(among), (Steps{{start, 0}, {compute, 0}, {start, 1}, {compute, 1}, {wait, 1}}));
}

TEST(Schedule, GroupsMergeTheirGradientsAndTheFirstExchangesThem) {
  const TwoLayers two;
  const GradientOptions options{.exchange = Exchange::reduce};
  EXPECT_EQ(two.beside(two.schedule(options, {.group = 0, .groups = 2})), (Steps{{barrier, 0},
                                                                                 {merge, 0},
                                                                                 {barrier, 0},
                                                                                 {start, 0},
                                                                                 {barrier, 0},
                                                                                 {merge, 1},
                                                                                 {barrier, 0},
                                                                                 {start, 1},
                                                                                 {wait, 0},
                                                                                 {barrier, 0},
                                                                                 {compute, 0},
                                                                                 {wait, 1},
                                                                                 {barrier, 0},
                                                                                 {compute, 1}}));
  EXPECT_EQ(two.beside(two.schedule(options, {.group = 1, .groups = 2})), (Steps{{barrier, 0},
                                                                                 {merge, 0},
                                                                                 {barrier, 0},
                                                                                 {barrier, 0},
                                                                                 {merge, 1},
                                                                                 {barrier, 0},
                                                                                 {barrier, 0},
                                                                                 {compute, 0},
                                                                                 {barrier, 0},
                                                                                 {compute, 1}}));
}

TEST(Schedule, GroupsReadServedValuesAfterTheFirstHasWaited) {
  const TwoLayers two;
  const GradientOptions options{.exchange = Exchange::serve};
  EXPECT_EQ(two.beside(two.schedule(options, {.group = 0, .groups = 2})), (Steps{{wait, 1},
                                                                                 {barrier, 0},
                                                                                 {wait, 0},
                                                                                 {barrier, 0},
                                                                                 {barrier, 0},
                                                                                 {merge, 0},
                                                                                 {barrier, 0},
                                                                                 {start, 0},
                                                                                 {barrier, 0},
                                                                                 {merge, 1},
                                                                                 {barrier, 0},
                                                                                 {start, 1}}));
  EXPECT_EQ(
      two.beside(two.schedule(options, {.group = 1, .groups = 2})),
      (Steps{
          {barrier, 0}, {barrier, 0}, {barrier, 0}, {merge, 0}, {barrier, 0}, {barrier, 0}, {merge, 1}, {barrier, 0}}));
}

// Whether an update is left out is decided by gradients that all replicas have alike.
TEST(Schedule, AScaledLossLooksAtExchangedGradients) {
  const TwoLayers two(true);
  const Schedule schedule = two.schedule({.exchange = Exchange::reduce, .accumulate = 2});
  EXPECT_EQ(
      two.beside(schedule),
      (Steps{
          {accumulate, 0}, {start, 0}, {accumulate, 1}, {start, 1}, {wait, 0}, {wait, 1}, {compute, 0}, {compute, 1}}));
  const auto rates = std::find_if(two.program.instructions.begin(), two.program.instructions.end(), [](const auto& i) {
    return i.node != nullptr && i.node->template as<op::UnscaledRates>() != nullptr;
  });
  const auto index = static_cast<int>(rates - two.program.instructions.begin());
  EXPECT_GT(two.place(schedule, {compute, index}), two.place(schedule, {wait, 1}));
  EXPECT_LT(two.place(schedule, {compute, index}), two.place(schedule, {compute, schedule.updates[0]}));
  const Schedule collecting = two.schedule({.exchange = Exchange::reduce, .accumulate = 2}, {}, true);
  EXPECT_EQ(two.place(collecting, {compute, index}), std::ssize(collecting.steps));
}

TEST(Schedule, WhatCannotBeIsRefused) {
  const TwoLayers two, scaled(true);
  EXPECT_THROW(two.schedule({.exchange = Exchange::serve, .clip_norm = 1}), Error);
  EXPECT_THROW(two.schedule({.exchange = Exchange::reduce_on_device, .accumulate = 2}, {.on_host = false}), Error);
  EXPECT_THROW(scaled.schedule({.exchange = Exchange::serve}), Error);
  EXPECT_THROW(scaled.schedule({.exchange = Exchange::shard}), Error);
  EXPECT_THROW(two.schedule({.exchange = Exchange::shard}, {.on_host = false}), Error);
}

}  // namespace
}  // namespace trireme
