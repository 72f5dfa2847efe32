#include "trireme/plan/pipeline_order.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

constexpr PipelineKind kKinds[] = {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::interleaved,
                                   PipelineKind::zero_bubble};

PipelineCosts equal_costs(int parts, double forward = 1, double backward = 1, double weights = 1) {
  const auto each = [parts](double seconds) { return std::vector<double>(static_cast<std::size_t>(parts), seconds); };
  return {.forward = each(forward), .backward = each(backward), .weights = each(weights)};
}

PipelineShape shape_of(PipelineKind kind, int stages, int micro_batches) {
  return {.stages = stages, .micro_batches = micro_batches, .chunks = default_chunks(kind)};
}

TEST(PipelineOrder, EveryTaskIsDoneOnceInAnOrderThatEnds) {
  for (const PipelineKind kind : kKinds) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const int rounds : {1, 2, 3, 5}) {
        const PipelineShape shape = shape_of(kind, stages, stages * rounds);
        const PipelineOrder order = make_pipeline_order(kind, shape);
        std::set<std::tuple<int, int, PipelineTask>> seen;
        for (int stage = 0; stage < stages; ++stage) {
          for (const PipelineOrder::Task& task : order.tasks[static_cast<std::size_t>(stage)]) {
            EXPECT_EQ(order.stage_of(task.part), stage);
            EXPECT_TRUE(seen.insert({task.part, task.micro_batch, task.kind}).second);
          }
        }
        const int kinds = order.splits_backward ? 3 : 2;
        EXPECT_EQ(std::ssize(seen), kinds * shape.parts() * shape.micro_batches) << to_string(kind) << " " << stages;
        EXPECT_NO_THROW(predict(order, equal_costs(shape.parts()))) << to_string(kind) << " " << stages;
      }
    }
  }
}

TEST(PipelineShape, NumbersWorkersStageByStage) {
  const PipelineShape shape{.stages = 3, .micro_batches = 6, .replicas = {3, 1, 2}};
  int worker = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (int replica = 0; replica < shape.replicas_of(stage); ++replica, ++worker) {
      const PipelineShape::Place place = shape.place_of(worker);
      EXPECT_EQ(place.stage, stage) << worker;
      EXPECT_EQ(place.replica, replica) << worker;
      EXPECT_EQ(place.replicas, shape.replicas_of(stage)) << worker;
      EXPECT_EQ(shape.worker_of(stage, replica + 6), worker) << "micro-batches take turns";
    }
  }
}

// One process sums gradients in the order of the micro-batches; so must each part.
TEST(PipelineOrder, MicroBatchesFollowEachOtherInEveryKindOfTask) {
  for (const PipelineKind kind : kKinds) {
    const PipelineOrder order = make_pipeline_order(kind, shape_of(kind, 4, 8));
    std::map<std::pair<int, PipelineTask>, int> last;
    for (const auto& tasks : order.tasks) {
      for (const PipelineOrder::Task& task : tasks) {
        const auto [found, is_first] = last.try_emplace({task.part, task.kind}, 0);
        if (!is_first) ++found->second;
        EXPECT_EQ(task.micro_batch, found->second) << to_string(kind);
      }
    }
  }
}

TEST(PipelineOrder, IdleTimesAreThoseOfTheFormulas) {
  for (const int stages : {2, 3, 4, 8}) {
    for (const int m : {24, 48}) {
      const auto idle = [&](PipelineKind kind) {
        const PipelineShape shape = shape_of(kind, stages, m);
        return predict(make_pipeline_order(kind, shape), equal_costs(shape.parts())).idle_share;
      };
      const double p = stages, formula = (p - 1) / (m + p - 1);
      EXPECT_NEAR(idle(PipelineKind::gpipe), formula, 1e-9);
      EXPECT_NEAR(idle(PipelineKind::one_forward), formula, 1e-9);
      const double interleaved = (p - 1) / 2;  // of a micro-batch's time in a stage
      EXPECT_NEAR(idle(PipelineKind::interleaved), interleaved / (m + interleaved), 1e-9);
      // At best (p - 1)(F + B - W) of 3m, a third of 1f1b's; in 1f1b's memory about half.
      EXPECT_LT(idle(PipelineKind::zero_bubble), 0.6 * formula) << stages << " " << m;
    }
  }
}

TEST(PipelineOrder, FewMicroBatchesIdleAsTheFormulasSay) {
  for (const int stages : {2, 4}) {
    for (const int m : {4, 8, 16}) {
      const auto idle = [&](PipelineKind kind) {
        return predict(make_pipeline_order(kind, shape_of(kind, stages, m)), equal_costs(stages)).idle_share;
      };
      const double formula = (stages - 1.0) / (m + stages - 1.0);
      EXPECT_NEAR(idle(PipelineKind::gpipe), formula, 0.05 * formula) << stages << " " << m;
      EXPECT_NEAR(idle(PipelineKind::one_forward), formula, 0.05 * formula) << stages << " " << m;
      EXPECT_LT(idle(PipelineKind::zero_bubble), 0.95 * formula) << stages << " " << m;
    }
  }
}

TEST(PipelineOrder, StagesKeepAsManyMicroBatchesAsThereAreStagesBehindThem) {
  for (const int stages : {2, 4, 6}) {
    for (const PipelineKind kind : {PipelineKind::one_forward, PipelineKind::zero_bubble}) {
      const PipelineTimes times =
          predict(make_pipeline_order(kind, {.stages = stages, .micro_batches = 12}), equal_costs(stages));
      for (int stage = 0; stage < stages; ++stage) {
        const int most = kind == PipelineKind::one_forward ? stages - stage : stages;
        EXPECT_LE(times.kept[static_cast<std::size_t>(stage)], most) << to_string(kind) << " " << stage;
      }
    }
  }
}

TEST(PipelineOrder, ATransferTakesTime) {
  PipelineCosts costs = equal_costs(2);
  const PipelineOrder order = make_pipeline_order(PipelineKind::gpipe, {.stages = 2, .micro_batches = 1});
  EXPECT_DOUBLE_EQ(predict(order, costs).total, 6);
  costs.transfer = {0.5};
  EXPECT_DOUBLE_EQ(predict(order, costs).total, 7);
}

// Three workers send to one: what arrives together is received in turn.
TEST(PipelineOrder, TransfersTakeTurnsOnTheLinksOfAWorker) {
  PipelineCosts costs = equal_costs(2, 3, 0, 0);
  costs.forward[1] = 0;
  costs.transfer = {1};
  const PipelineShape shape{.stages = 2, .micro_batches = 3, .replicas = {3, 1}};
  const PipelineTimes times = predict(make_pipeline_order(PipelineKind::gpipe, shape), costs);
  for (std::size_t m = 0; m < 3; ++m) EXPECT_DOUBLE_EQ(times.tasks[1][m].start, 4.0 + static_cast<double>(m));
}

TEST(PipelineOrder, WorkersOfAStageAreAsBusyAsOneWithAsManyMicroBatches) {
  for (const PipelineKind kind : kKinds) {
    for (const int stages : {2, 4}) {
      const PipelineShape one = shape_of(kind, stages, 16);
      PipelineShape three = shape_of(kind, stages, 48);
      three.replicas.assign(static_cast<std::size_t>(stages), 3);
      const PipelineTimes expected = predict(make_pipeline_order(kind, one), equal_costs(one.parts()));
      const PipelineTimes times = predict(make_pipeline_order(kind, three), equal_costs(three.parts()));
      EXPECT_DOUBLE_EQ(times.total, expected.total) << to_string(kind) << " " << stages;
      EXPECT_NEAR(times.idle_share, expected.idle_share, 1e-9) << to_string(kind) << " " << stages;
      EXPECT_EQ(times.kept, expected.kept) << to_string(kind) << " " << stages;
    }
  }
}

// Work in proportion to the workers, so that all could be busy but for the first and last micro-batches.
TEST(PipelineOrder, UnequalStagesDoNotWaitForEachOther) {
  struct Case {
    std::vector<int> replicas;
    std::vector<double> seconds;
  };
  for (const Case& each : {Case{{3, 1}, {3, 1}}, Case{{1, 3}, {1, 3}}, Case{{2, 1, 1}, {2, 1, 1}}}) {
    const PipelineCosts costs{.forward = each.seconds, .backward = each.seconds, .weights = each.seconds};
    for (const PipelineKind kind : {PipelineKind::gpipe, PipelineKind::one_forward, PipelineKind::zero_bubble}) {
      const PipelineShape shape{
          .stages = static_cast<int>(each.replicas.size()), .micro_batches = 48, .replicas = each.replicas};
      const PipelineTimes times = predict(make_pipeline_order(kind, shape), costs);
      EXPECT_LT(times.idle_share, 0.12) << to_string(kind) << " " << each.replicas.front();
    }
  }
}

// zb-h1 is a list of tasks by their costs: with the measured ones it waits less.
TEST(PipelineOrder, MeasuredCostsMakeABetterSchedule) {
  const PipelineShape shape{.stages = 4, .micro_batches = 8};
  const PipelineCosts costs{
      .forward = {2, 2.25, 2.75, 2.75}, .backward = {1.75, 2.75, 1.25, 1.75}, .weights = {1.5, 1.25, 1, 1.25}};
  const auto total = [&](const PipelineOrder& order) { return predict(order, costs).total; };
  const PipelineOrder nominal = make_pipeline_order(PipelineKind::zero_bubble, shape);
  const PipelineOrder measured = make_pipeline_order(PipelineKind::zero_bubble, shape, costs);
  EXPECT_LT(total(measured), 0.9 * total(nominal));
  EXPECT_EQ(make_pipeline_order(PipelineKind::one_forward, shape, costs).tasks,
            make_pipeline_order(PipelineKind::one_forward, shape).tasks);
}

TEST(PipelineOrder, StagesThatWouldWaitForEachOtherAreFound) {
  PipelineOrder order = make_pipeline_order(PipelineKind::one_forward, {.stages = 2, .micro_batches = 2});
  std::swap(order.tasks[1].front(), order.tasks[1].back());
  EXPECT_THROW(predict(order, equal_costs(2)), Error);
}

TEST(PipelineOrder, NamesAndShapesAreChecked) {
  for (const PipelineKind kind : kKinds) EXPECT_EQ(find_pipeline_kind(to_string(kind)), kind);
  EXPECT_EQ(find_pipeline_kind("1b1f"), std::nullopt);
  EXPECT_THROW(make_pipeline_order(PipelineKind::gpipe, {.stages = 0}), Error);
  EXPECT_THROW(make_pipeline_order(PipelineKind::gpipe, {.stages = 2, .micro_batches = 2, .chunks = 2}), Error);
  EXPECT_THROW(make_pipeline_order(PipelineKind::interleaved, {.stages = 4, .micro_batches = 6, .chunks = 2}), Error);
  const PipelineShape unequal{.stages = 2, .micro_batches = 12, .chunks = 2, .replicas = {3, 1}};
  EXPECT_THROW(make_pipeline_order(PipelineKind::interleaved, unequal), Error);
  EXPECT_THROW(make_pipeline_order(PipelineKind::gpipe, {.stages = 2, .micro_batches = 4, .replicas = {3, 1}}), Error);
}

TEST(PipelineOrder, ADrawingShowsTasksAndGaps) {
  const PipelineOrder order = make_pipeline_order(PipelineKind::one_forward, {.stages = 2, .micro_batches = 2});
  EXPECT_EQ(draw(order, predict(order, equal_costs(2)), 9),
            "stage 0 |01..aa.bb|\n"
            "stage 1 |.0aa1bb..|\n");
}

}  // namespace
}  // namespace trireme
