#include "trireme/report/renderers.hpp"

#include <gtest/gtest.h>

#include "tests/report/record_builder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::report {
namespace {

using testkit::about;
using testkit::RecordBuilder;

constexpr const char* kAttack = "</script><img src=x onerror=alert(1)>\"'&|`";

// Every place where other people's text comes in has some that would do harm.
Document hostile_document() {
  RecordSet records;
  for (const int workers : {1, 2}) {
    Json json = RecordBuilder()
                    .study(kAttack, {{"workers", workers}, {"note", kAttack}})
                    .config("workers", workers)
                    .config("model", kAttack)
                    .host(kAttack)
                    .json();
    json["study"]["command"] = std::string("trireme bench --model ") + kAttack;
    json["machine"]["warnings"] = {kAttack};
    for (const double speed : about(100 * workers)) {
      json["results"]["images_per_second"] = speed;
      records.runs.push_back(read_run(json, kAttack));
    }
  }
  records.runs.push_back(RecordBuilder().study(kAttack, {{"workers", 3}}).error(kAttack).run());
  records.plans[kAttack] = {
      .name = kAttack, .title = kAttack, .question = kAttack, .source = kAttack, .figure = "", .varied = {}};
  records.warnings.emplace_back(kAttack);
  return make_document(records);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Html, TextOfOthersStaysText) {
  if (chart_script().empty()) GTEST_SKIP() << "built without Chart.js";
  const std::string page = to_html(hostile_document());
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "</script"), 3U);  // the data, Chart.js, the page's own
  EXPECT_GT(count(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), 10U);
}

TEST(Html, AsksForNothing) {
  if (chart_script().empty()) GTEST_SKIP() << "built without Chart.js";
  const std::string page = to_html(hostile_document());
  for (const char* asking : {"src=\"", "@import", "url(", "<link rel=\"stylesheet", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(count(page, asking), 0U) << asking;
  EXPECT_EQ(count(page, "default-src 'none'"), 1U);
}

TEST(Html, WithoutChartJsSaysWhatIsMissing) {
  if (!chart_script().empty()) GTEST_SKIP() << "built with Chart.js";
  try {
    to_html(hostile_document());
    FAIL() << "a page without its charts";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(error.what()).find("libjs-chart.js"), std::string::npos);
  }
}

TEST(Html, DataOfAChartIsJsonThatEndsNoScript) {
  const Document document = hostile_document();
  for (const Figure* figure : document.figures()) {
    const std::string data = chart_data(*figure);
    EXPECT_EQ(data.find('<'), std::string::npos);
    const Json json = Json::parse(data);
    EXPECT_EQ(json["series"].size(), figure->series.size());
  }
}

TEST(Svg, TextOfOthersStaysText) {
  const Document document = hostile_document();
  for (const Figure* figure : document.figures()) {
    const std::string drawing = to_svg(*figure);
    EXPECT_EQ(count(drawing, "<img"), 0U);
    EXPECT_EQ(count(drawing, "<script"), 0U);
    EXPECT_EQ(drawing.rfind("<svg xmlns", 0), 0U);
  }
}

TEST(Svg, DrawsEveryPointWithItsSpread) {
  Figure figure{.id = "f", .kind = FigureKind::lines, .title = "T", .x = {.title = "x"}, .y = {.title = "y"}};
  figure.series.push_back(
      {.name = "a", .points = {{.x = 1, .y = 2, .spread = perf::Interval{1, 3}}, {.x = 2, .y = 4}}});
  figure.series.push_back({.name = "i", .points = {{.x = 1, .y = 2}, {.x = 2, .y = 4}}, .ideal_of = 0});
  const std::string drawing = to_svg(figure);
  EXPECT_EQ(count(drawing, "<circle"), 2U);
  EXPECT_EQ(count(drawing, "stroke-width=\"1.4\""), 3U);  // one whisker: a line and two ends
  EXPECT_EQ(count(drawing, "stroke-dasharray"), 2U);      // the ideal, and its sample in the legend
}

TEST(Svg, DrawsBarsHeatMapsAndLogarithms) {
  Figure bars{.id = "b", .kind = FigureKind::bars, .title = "T", .x = {.categories = {"p", "q"}}, .y = {}};
  bars.series.push_back({.name = "a", .points = {{.x = 0, .y = 2}, {.x = 1, .y = -4}}});
  EXPECT_EQ(count(to_svg(bars), "<rect"), 3U);  // the ground and two bars
  Figure map{.id = "m", .kind = FigureKind::heat_map, .title = "T", .x = {.categories = {"1", "2"}}, .y = {}};
  map.series.push_back({.name = "1", .points = {{.x = 0, .y = 2}, {.x = 1, .y = 4}}});
  EXPECT_EQ(count(to_svg(map), "<rect"), 3U);
  Figure powers{.id = "p", .title = "T", .x = {.logarithmic = true}, .y = {.logarithmic = true}};
  powers.series.push_back(
      {.name = "a", .points = {{.x = 1, .y = 1e-3, .spread = perf::Interval{0, 1}}, {.x = 1e6, .y = 10}}});
  const std::string drawing = to_svg(powers);
  EXPECT_EQ(drawing.find("nan"), std::string::npos);
  EXPECT_EQ(drawing.find("inf"), std::string::npos);
}

TEST(Csv, QuotesAndKeepsEveryDigit) {
  const FigureTable table{.columns = {{"name"}, {"a, b", true}},
                          .rows = {{{"plain"}, number_cell(1.0 / 3)}, {{"with \"quotes\"\nand, commas"}, {}}}};
  EXPECT_EQ(to_csv(table), "name,\"a, b\"\nplain,0.3333333333333333\n\"with \"\"quotes\"\"\nand, commas\",\n");
}

TEST(Markdown, TextOfOthersBreaksNoTable) {
  const std::string text = to_markdown(hostile_document(), true);
  EXPECT_EQ(count(text, "\n<img"), 0U);
  EXPECT_EQ(count(text, "| </script"), 0U);
  EXPECT_GT(count(text, "&lt;/script>&lt;img src=x onerror=alert(1)>\"'&\\|\\`"), 5U);
  EXPECT_GT(count(text, ".svg)"), 0U);
}

TEST(Markdown, HasFindingsTablesAndCommands) {
  RecordSet records;
  for (const int workers : {1, 2}) {
    add_runs(records, RecordBuilder().study("w", {{"workers", workers}}).config("workers", workers),
             about(100 * workers));
  }
  const std::string text = to_markdown(make_document(records), false);
  EXPECT_NE(text.find("- **shown**: 2 workers beat 1 worker by 2.00x"), std::string::npos) << text;
  EXPECT_NE(text.find("| workers | images/s |"), std::string::npos);
  EXPECT_NE(text.find("```\ntrireme bench --model resnet50\n"), std::string::npos);
  EXPECT_EQ(count(text, ".svg)"), 0U);
}

TEST(NumberText, HasThreeOrFourDigits) {
  EXPECT_EQ(number_text(12345.6), "12,346");
  EXPECT_EQ(number_text(1234.56), "1235");
  EXPECT_EQ(number_text(123.456), "123.5");
  EXPECT_EQ(number_text(1.23456), "1.23");
  EXPECT_EQ(number_text(0.0123456), "0.0123");
  EXPECT_EQ(number_text(32), "32");
  EXPECT_EQ(number_text(-4.5), "-4.50");
}

}  // namespace
}  // namespace trireme::report
