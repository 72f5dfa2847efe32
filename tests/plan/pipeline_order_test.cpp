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
        return predict(make_pipeline_order(kind, shape), equal_costs(shape.parts())).idle_share();
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
  costs.transfer = 0.5;
  EXPECT_DOUBLE_EQ(predict(order, costs).total, 7);
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
}

TEST(PipelineOrder, ADrawingShowsTasksAndGaps) {
  const PipelineOrder order = make_pipeline_order(PipelineKind::one_forward, {.stages = 2, .micro_batches = 2});
  EXPECT_EQ(draw(order, predict(order, equal_costs(2)), 9),
            "stage 0 |01..aa.bb|\n"
            "stage 1 |.0aa1bb..|\n");
}

}  // namespace
}  // namespace trireme
