#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/record_builder.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using testkit::about;
using testkit::RecordBuilder;

RecordBuilder cell(const std::string& kind, const Json& settings) {
  RecordBuilder builder;
  builder.study("s", settings, 0, kind);
  for (const auto& [option, value] : settings.items()) {
    std::string name = option == "ps" ? "servers" : option;
    std::replace(name.begin(), name.end(), '-', '_');
    builder.config(name, value);
  }
  return builder;
}

Study study_of(const RecordSet& records) { return make_studies(records).at(0); }

RecordSet scaling_records() {
  RecordSet records;
  add_runs(records, cell("scaling", {{"workers", 1}}), about(100));
  add_runs(records, cell("scaling", {{"workers", 2}}), about(180));
  add_runs(records, cell("scaling", {{"workers", 4}}), about(300));
  return records;
}

TEST(ScalingFigure, HasTheIdealLineAndEfficiency) {
  const std::vector<Figure> figures = study_figures(study_of(scaling_records()));
  ASSERT_EQ(figures.size(), 2U);
  const Figure& speed = figures[0];
  ASSERT_EQ(speed.series.size(), 2U);
  EXPECT_DOUBLE_EQ(speed.series[0].points[2].y, 300);
  EXPECT_EQ(speed.series[0].points[2].runs, 5);
  EXPECT_LT(speed.series[0].points[2].spread->low, 300);
  EXPECT_GT(speed.series[0].points[2].spread->high, 300);
  EXPECT_EQ(*speed.series[1].ideal_of, 0);
  EXPECT_DOUBLE_EQ(speed.series[1].points[2].y, 400);
  const Figure& efficiency = figures[1];
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[0].y, 100);
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[1].y, 90);
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[2].y, 75);
  EXPECT_EQ(speed.table.rows.size(), 3U);
  EXPECT_EQ(speed.table.columns.back().title, "efficiency %");
  EXPECT_DOUBLE_EQ(*speed.table.rows[2].back().number, 75);
  EXPECT_EQ(speed.commands.size(), 3U);
  EXPECT_EQ(speed.machine, "node1: A CPU, 4 cores");
}

TEST(ScalingFigure, TheIdealIsAStraightLine) {
  RecordSet records = scaling_records();
  EXPECT_FALSE(study_figures(study_of(records))[0].x.logarithmic);
  add_runs(records, cell("scaling", {{"workers", 64}}), about(3000));
  const Figure far = study_figures(study_of(records))[0];
  EXPECT_TRUE(far.x.logarithmic && far.y.logarithmic);
}

TEST(ScalingFigure, WorkersOnTheSameCoresAreNoted) {
  RecordSet records;
  add_runs(records, cell("scaling", {{"workers", 1}}).config("num_intra_threads", 4), about(100));
  add_runs(records, cell("scaling", {{"workers", 4}}).config("num_intra_threads", 1), about(120));
  const std::vector<Figure> figures = study_figures(study_of(records));
  ASSERT_FALSE(figures[0].notes.empty());
  EXPECT_NE(figures[0].notes.back().find("share the cores"), std::string::npos);
}

TEST(HeatMap, HasACellForEachPairAndAHoleWhereNoneWasRun) {
  RecordSet records;
  add_runs(records, cell("heatmap", {{"num-intra-threads", 1}, {"batch-size", 8}}), about(10));
  add_runs(records, cell("heatmap", {{"num-intra-threads", 1}, {"batch-size", 64}}), about(20));
  add_runs(records, cell("heatmap", {{"num-intra-threads", 2}, {"batch-size", 8}}), about(15));
  const std::vector<Figure> figures = study_figures(study_of(records));
  ASSERT_EQ(figures.size(), 1U);
  const Figure& map = figures[0];
  EXPECT_EQ(map.kind, FigureKind::heat_map);
  EXPECT_EQ(map.x.categories, (std::vector<std::string>{"8", "64"}));
  ASSERT_EQ(map.series.size(), 2U);
  EXPECT_EQ(map.series[0].name, "1");
  EXPECT_EQ(map.series[0].points.size(), 2U);
  EXPECT_EQ(map.series[1].points.size(), 1U);
  EXPECT_DOUBLE_EQ(map.series[1].points[0].y, 15);
}

TEST(HeatMap, AThirdOptionMakesSeveralMaps) {
  RecordSet records;
  for (const char* model : {"alexnet", "vgg11"}) {
    for (const int threads : {1, 2}) {
      for (const int batch : {8, 16}) {
        add_runs(records, cell("heatmap", {{"model", model}, {"num-intra-threads", threads}, {"batch-size", batch}}),
                 about(threads * batch));
      }
    }
  }
  const std::vector<Figure> figures = study_figures(study_of(records));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[1].title, "Speed by threads per worker and batch per worker · vgg11");
  EXPECT_NE(figures[0].id, figures[1].id);
}

TEST(BarFigure, ModesAreColoursAndTheRestPlaces) {
  RecordSet records;
  for (const int batch : {32, 64}) {
    const Json sp{{"label", "SP"}, {"workers", 1}}, mp{{"label", "MP"}, {"workers", 2}};
    add_runs(records, RecordBuilder().study("s", {{"batch-size", batch}, {"mode", sp}}, 0, "bars"), about(100));
    add_runs(records, RecordBuilder().study("s", {{"batch-size", batch}, {"mode", mp}}, 0, "bars").config("workers", 2),
             about(110));
  }
  const Figure figure = study_figures(study_of(records)).at(0);
  EXPECT_EQ(figure.kind, FigureKind::bars);
  EXPECT_EQ(figure.x.categories, (std::vector<std::string>{"batch 32", "batch 64"}));
  ASSERT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.series[1].name, "MP");
  EXPECT_DOUBLE_EQ(figure.series[1].points[1].y, 110);
}

TEST(ServersFigure, IsOverServersWithALinePerNumberOfWorkers) {
  RecordSet records;
  for (const int workers : {2, 4}) {
    for (const int servers : {1, 2})
      add_runs(records, cell("servers", {{"workers", workers}, {"ps", servers}}), about(50 * servers));
  }
  const Figure figure = study_figures(study_of(records)).at(0);
  EXPECT_EQ(figure.x.title, "parameter servers");
  ASSERT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.series[0].name, "2 workers");
}

TEST(ForwardBackwardFigure, TimesABatchOfEachFramework) {
  RecordSet records;
  for (const char* framework : {"trireme", "pytorch"}) {
    for (const bool forward : {true, false}) {
      add_runs(records, cell("forward_backward", {{"forward-only", forward}}).framework(framework),
               about(forward ? 320 : 64));
    }
  }
  const Figure figure = study_figures(study_of(records)).at(0);
  ASSERT_EQ(figure.series.size(), 4U);
  EXPECT_EQ(figure.series[0].name, "trireme, forward");
  EXPECT_DOUBLE_EQ(figure.series[0].points[0].y, 100);  // 32 images at 320 a second, in ms
  EXPECT_DOUBLE_EQ(figure.series[1].points[0].y, 500);
}

TEST(ForwardBackwardFigure, TimeIsThatOfTheMedianSpeed) {  // also of an even number of runs
  RecordSet records;
  for (const bool forward : {true, false}) {
    add_runs(records, cell("forward_backward", {{"forward-only", forward}}), {100, 300});
  }
  const Figure figure = study_figures(study_of(records)).at(0);
  EXPECT_DOUBLE_EQ(figure.series[0].points[0].y, 160);  // 32 images at 200 a second, not the mean of 320 and 107
  EXPECT_DOUBLE_EQ(figure.series[0].points[0].spread->high, 320);
  EXPECT_DOUBLE_EQ(*figure.table.rows[0].back().number, 160);
}

TEST(ForwardBackwardFigure, BuildsStandBesideOtherFrameworks) {
  const auto run = [] { return cell("forward_backward", {{"model", "resnet50"}}); };
  RecordSet records;
  add_runs(records, run(), about(100));
  add_runs(records, run().commit("def456"), about(120));
  add_runs(records, run().framework("pytorch").version("2.1"), about(80));
  const std::vector<Figure> figures = study_figures(study_of(records));
  ASSERT_EQ(figures.size(), 2U);  // one for each build
  for (const Figure& figure : figures) {
    ASSERT_EQ(figure.series.size(), 2U);
    EXPECT_EQ(figure.series[0].name, "trireme");
    EXPECT_EQ(figure.series[1].name, "pytorch");
  }
}

TEST(Figures, IntervalsSayWhatTheyAre) {
  RecordSet records;
  add_runs(records, cell("bars", {{"batch-size", 8}}), about(100));
  add_runs(records, cell("bars", {{"batch-size", 16}}), {100, 101, 102, 103, 104, 105});
  add_runs(records, cell("bars", {{"batch-size", 32}}), {100});
  const Figure figure = study_figures(study_of(records)).at(0);
  ASSERT_EQ(figure.table.columns[4].title, "interval");
  EXPECT_EQ(figure.table.rows[0][4].text, "range");
  EXPECT_EQ(figure.table.rows[1][4].text, "95 %");
  EXPECT_EQ(figure.table.rows[2][4].text, "");
  EXPECT_TRUE(figure.series[0].points[0].spread->is_range);
}

TEST(IoOverheadFigure, IsOverWorkersWithItsSpread) {
  RecordSet records;
  for (const int workers : {1, 2}) {
    for (const double percent : {2.0, 3.0, 4.0}) {
      records.runs.push_back(
          cell("io_overhead", {{"workers", workers}}).speed(100).io_overhead({workers * percent}).run());
    }
  }
  const Figure figure = study_figures(study_of(records)).at(0);
  EXPECT_EQ(figure.y.title, "I/O overhead (%)");
  ASSERT_EQ(figure.series.size(), 1U);
  EXPECT_DOUBLE_EQ(figure.series[0].points[1].y, 6);
  EXPECT_DOUBLE_EQ(figure.series[0].points[1].spread->low, 4);
}

TEST(BreakdownFigure, StacksTheTimeOfEachRank) {
  RecordSet records;
  const record::Breakdown rank{.compute = 0.08,
                               .communication = 0.03,
                               .exposed_communication = 0.01,
                               .input_wait = 0.0,
                               .optimizer = {},
                               .idle = 0.01};
  record::Breakdown slower = rank;
  slower.compute = 0.09;
  slower.idle = 0.0;
  records.runs.push_back(cell("bars", {{"workers", 2}}).breakdown({rank, slower}).run());
  records.runs.push_back(cell("bars", {{"workers", 1}}).breakdown({}).run());
  const std::vector<Figure> figures = study_figures(study_of(records));
  ASSERT_EQ(figures.size(), 2U);
  const Figure& figure = figures[1];
  EXPECT_EQ(figure.kind, FigureKind::stacked_bars);
  EXPECT_EQ(figure.x.categories, (std::vector<std::string>{"2 workers · rank 0", "2 workers · rank 1"}));
  ASSERT_EQ(figure.series.size(), 3U);  // compute, exposed communication, idle: what nobody waited for is left out
  EXPECT_DOUBLE_EQ(figure.series[0].points[1].y, 90);
  EXPECT_EQ(figure.series[2].name, "idle");
  EXPECT_EQ(figure.notes.size(), 3U);  // once measured, the optimizer is in compute, one cell has no shares
}

TEST(TrainingFigures, LossOverEpochsAndTimeAndAccuracy) {
  const std::vector<Figure> figures = training_figures({testkit::training("run/a.json")});
  ASSERT_EQ(figures.size(), 3U);
  EXPECT_EQ(figures[0].series[0].points.size(), 4U);
  EXPECT_DOUBLE_EQ(figures[0].series[0].points[3].x, 2);
  EXPECT_DOUBLE_EQ(figures[1].series[0].points[3].x, 6);
  EXPECT_DOUBLE_EQ(figures[2].series[0].points[1].y, 80);
  EXPECT_DOUBLE_EQ(*figures[0].table.rows[1].back().number, 7);  // seconds so far
}

TEST(NetworkFigures, BandwidthOverSizeInLogarithms) {
  const std::vector<Figure> figures = network_figures({testkit::network("net.json")});
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_TRUE(figures[0].x.logarithmic && figures[0].y.logarithmic);
  ASSERT_EQ(figures[0].series.size(), 2U);                // two modes
  EXPECT_DOUBLE_EQ(figures[0].series[0].points[1].y, 5);  // GB/s
  EXPECT_LT(figures[0].series[0].points[1].spread->low, 5);
  EXPECT_DOUBLE_EQ(figures[1].series[0].points[0].y, 1);
}

TEST(Figures, MachinesHaveFiguresOfTheirOwn) {
  RecordSet records = scaling_records();
  for (const int workers : {1, 2}) add_runs(records, cell("scaling", {{"workers", workers}}).host("node2"), about(500));
  const std::vector<Figure> figures = study_figures(study_of(records));
  EXPECT_EQ(figures.size(), 4U);
  for (const Figure& figure : figures) EXPECT_EQ(figure.machine.find(';'), std::string::npos) << figure.machine;
}

}  // namespace
}  // namespace trireme::report
