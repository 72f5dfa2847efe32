#include "trireme/report/renderers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/record_builder.hpp"

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
  const std::string page = to_html(hostile_document());
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(count(page, "</script"), 1U);  // the page's own
  EXPECT_GT(count(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), 10U);
}

TEST(Html, AsksForNothing) {
  const std::string page = to_html(hostile_document());
  for (const char* asking : {"src=\"", "@import", "url(", "<link rel=\"stylesheet", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(count(page, asking), 0U) << asking;
  EXPECT_EQ(count(page, "default-src 'none'"), 1U);
}

TEST(Html, FiguresNeedNoScript) {
  const Document document = hostile_document();
  const std::string page = to_html(document);
  EXPECT_GT(document.figures().size(), 0U);
  EXPECT_EQ(count(page, "<svg viewBox"), document.figures().size());
  EXPECT_EQ(count(page, "<svg"), count(page, "role=\"img\" aria-label=\""));
  EXPECT_EQ(count(page, "<noscript"), 0U);
  for (const Figure* figure : document.figures()) EXPECT_EQ(count(page, to_inline_svg(*figure)), 1U) << figure->id;
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

Figure line_figure() {
  Figure figure{.id = "f", .kind = FigureKind::lines, .title = "T", .x = {.title = "workers"}, .y = {.title = "y"}};
  figure.series.push_back(
      {.name = "<a>", .points = {{.x = 1, .y = 2, .spread = perf::Interval{1, 3}, .runs = 6}, {.x = 2, .y = 4}}});
  figure.series.push_back({.name = "i", .points = {{.x = 1, .y = 2}, {.x = 2, .y = 4}}, .ideal_of = 0});
  figure.series.push_back({.name = "j", .points = {{.x = 1, .y = 2}, {.x = 2, .y = 4}}, .ideal_of = 0});
  return figure;
}

TEST(Svg, DrawsEveryPointWithItsSpread) {
  const std::string drawing = to_svg(line_figure());
  EXPECT_EQ(count(drawing, "class=\"mark\""), 6U);
  EXPECT_EQ(count(drawing, "fill-opacity=\"0\""), 4U);  // points of ideals show only on hover
  // Three lines, their whisker, the legend: one entry for both ideals.
  EXPECT_EQ(count(drawing, "stroke-width=\"1.4\""), 4U);
  EXPECT_EQ(count(drawing, "stroke-dasharray"), 3U);
  EXPECT_EQ(count(drawing, ">ideal</text>"), 1U);
}

TEST(Svg, MarksSayWhatTheyAre) {
  for (const std::string& drawing : {to_svg(line_figure()), to_inline_svg(line_figure())}) {
    EXPECT_EQ(count(drawing, "<title>workers: 1\n&lt;a&gt;: 2 (95 %: 1 to 3), 6 runs</title>"), 1U) << drawing;
    EXPECT_EQ(count(drawing, "<title>workers: 2\n&lt;a&gt;: 4</title>"), 1U);
    EXPECT_EQ(count(drawing, "<title>workers: 2\ni: 4</title>"), 1U);
  }
}

TEST(Svg, ColoursAreThoseOfThePageOrOfPaper) {
  const std::string file = to_svg(line_figure()), element = to_inline_svg(line_figure());
  EXPECT_EQ(count(file, "var("), 0U);  // not every program that shows SVG knows variables
  EXPECT_EQ(count(file, "xmlns=\"http://www.w3.org/2000/svg\""), 1U);
  EXPECT_GT(count(file, "#2563eb"), 0U);
  EXPECT_EQ(count(element, "=\"#"), 0U);
  EXPECT_GT(count(element, "fill=\"var(--s0)\""), 0U);
  EXPECT_EQ(count(element, "xmlns"), 0U);
}

TEST(Svg, ManyPointsAreOneLineWithFewMarks) {
  Figure figure{.id = "f", .title = "T", .x = {.title = "step"}, .y = {.title = "loss"}};
  figure.series.push_back({.name = "a"});
  for (int step = 1; step <= 1000; ++step) figure.series[0].points.push_back({.x = 1.0 * step, .y = 1.0 / step});
  const std::string drawing = to_inline_svg(figure);
  EXPECT_GE(count(drawing, "class=\"mark\""), 90U);
  EXPECT_LE(count(drawing, "class=\"mark\""), 100U);
  EXPECT_EQ(count(drawing, "class=\"mark\""), count(drawing, "fill-opacity=\"0\""));
  EXPECT_EQ(count(drawing, "<title>step: 1000\n"), 1U);  // the last always has one
  EXPECT_GT(count(drawing, ","), 1000U);
  EXPECT_LT(drawing.size(), 40000U);
}

TEST(Svg, LongNamesAreCutBetweenLetters) {
  std::string name;
  for (int i = 0; i < 80; ++i) name += "é";
  Figure bars{.id = "b", .kind = FigureKind::bars, .title = "T", .x = {.categories = {name, "short"}}, .y = {}};
  bars.series.push_back({.name = "a", .points = {{.x = 0, .y = 2}, {.x = 1, .y = 4}}});
  const std::string drawing = to_svg(bars);
  EXPECT_EQ(count(drawing, "é…</text>"), 1U);
  EXPECT_EQ(count(drawing, name + "</text>"), 0U);
  EXPECT_EQ(count(drawing, name + "\n2</title>"), 1U);
  EXPECT_EQ(count(drawing, ">short</text>"), 1U);
}

TEST(Svg, DrawsBarsHeatMapsAndLogarithms) {
  Figure bars{.id = "b", .kind = FigureKind::bars, .title = "T", .x = {.categories = {"p", "q"}}, .y = {}};
  bars.series.push_back({.name = "a", .points = {{.x = 0, .y = 2}, {.x = 1, .y = -4}}});
  EXPECT_EQ(count(to_svg(bars), "<rect"), 3U);  // the ground and two bars
  bars.kind = FigureKind::stacked_bars;
  bars.series = {{.name = "a", .points = {{.x = 0, .y = 2}, {.x = 1, .y = 4}}},
                 {.name = "b", .points = {{.x = 1, .y = 1}}}};
  EXPECT_EQ(count(to_svg(bars), "<rect"), 6U);  // two more in the legend
  Figure map{.id = "m", .kind = FigureKind::heat_map, .title = "T", .x = {.categories = {"1", "2"}}, .y = {}};
  map.series.push_back({.name = "1", .points = {{.x = 0, .y = 2, .spread = perf::Interval{1, 3}}, {.x = 1, .y = 4}}});
  EXPECT_EQ(count(to_svg(map), "<rect"), 3U);
  EXPECT_EQ(count(to_svg(map), ">1 – 3</text>"), 1U);
  Figure powers{.id = "p", .title = "T", .x = {.logarithmic = true}, .y = {.logarithmic = true}};
  powers.series.push_back(
      {.name = "a", .points = {{.x = 1, .y = 1e-3, .spread = perf::Interval{0, 1}}, {.x = 1e6, .y = 10}}});
  for (const Figure& figure : {powers, Figure{.id = "e", .title = "nothing", .x = {}, .y = {}}}) {
    const std::string drawing = to_svg(figure);
    EXPECT_EQ(count(drawing, "\"nan"), 0U);
    EXPECT_EQ(count(drawing, "nan,") + count(drawing, "inf"), 0U);
    EXPECT_EQ(count(drawing, "\"-"), 0U);  // nothing left of or above the drawing
  }
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

Document scaling_document() {
  RecordSet records;
  for (const int workers : {1, 2}) {
    add_runs(records, RecordBuilder().study("w", {{"workers", workers}}).config("workers", workers),
             about(90.0 * workers + 10));
  }
  return make_document(records);
}

TEST(Html, NumbersOfFindingsAreSetOff) {
  const std::string page = to_html(scaling_document());
  EXPECT_EQ(count(page, "2 workers beat 1 worker by <strong>1.90x</strong> <span class=\"p\">(p = 0.008; 95 %: 1.8"),
            1U)
      << page;
  EXPECT_EQ(count(page, ": <strong>95 % of ideal</strong> ("), 1U);
  EXPECT_EQ(count(page, "configurations: <strong>190 images/s</strong>, <strong>1.90x</strong> the next"), 1U);
}

TEST(Json, HasFindingsAsDataAndText) {
  const Document document = scaling_document();
  const Json json = to_json(document);
  ASSERT_EQ(json["findings"].size(), document.findings.size());
  const auto pair =
      std::ranges::find_if(json["findings"], [](const Json& finding) { return finding["topic"] == "pair"; });
  ASSERT_NE(pair, json["findings"].end()) << json;
  EXPECT_EQ((*pair)["kind"], "shown");
  EXPECT_EQ((*pair)["verdict"], "larger");
  EXPECT_EQ((*pair)["subjects"], Json({"2 workers", "1 worker"}));
  EXPECT_NEAR((*pair)["ratio"].get<double>(), 1.9, 1e-12);
  EXPECT_NEAR((*pair)["p"].get<double>(), 2.0 / 252, 1e-12);
  EXPECT_EQ((*pair)["interval"]["kind"], "95 %");
  EXPECT_LT((*pair)["interval"]["low"].get<double>(), 1.9);
  EXPECT_NE((*pair)["text"].get<std::string>().find("2 workers beat 1 worker by 1.90x"), std::string::npos);
  EXPECT_NE(document.figure((*pair)["figure"]), nullptr);
  EXPECT_EQ(json["guidelines"][0]["command"], "trireme bench --model resnet50");
  EXPECT_EQ(json["files"].size(), 10U);
  EXPECT_EQ(json["files"][0], "made.json");
  EXPECT_EQ(to_json(hostile_document())["files"][0], kAttack);
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
