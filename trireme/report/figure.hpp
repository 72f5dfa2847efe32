// A figure as data: what is drawn, its table, and its origin. Made from studies, training and network records; drawn by
// the renderers (HTML, SVG, Markdown, CSV), which know nothing of its subject.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/perf/intervals.hpp"

namespace trireme::report {

// For captions: the meaning of a median's whiskers (perf::median_interval).
inline constexpr const char* kWhiskers =
    "whiskers hold the true median with 95 % confidence (fewer than 6 samples: their range)";

enum class FigureKind : std::uint8_t { lines, bars, stacked_bars, heat_map };

struct FigureAxis {
  std::string title = {};
  bool logarithmic = false;
  std::vector<std::string> categories = {};  // empty: a numeric axis; otherwise x of a point is an index, from 0
};

struct Point {
  double x = 0, y = 0;
  std::optional<perf::Interval> spread = {};  // none: a single sample, or nothing measured
  int runs = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points = {};
  // Index of the series that this one is a reference for (an ideal line): drawn dashed, in that one's color.
  std::optional<int> ideal_of = {};
  std::optional<int> colour = {};  // index in the palette; none: by position among the series
};

struct TableColumn {
  std::string title;
  bool is_number = false;
};

struct TableCell {
  std::string text;
  std::optional<double> number = {};  // to sort by
};

struct FigureTable {
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> rows;
};

struct FigureCommand {
  std::string label, command;
};

struct Figure {
  std::string id;  // letters, digits, dashes; unique in a document
  FigureKind kind = FigureKind::lines;
  std::string title, caption = {};
  std::string subject = {};  // its study, for readers of the figure alone
  FigureAxis x, y;
  std::string row_title = {};  // heat map: what its rows (the series) are
  std::vector<Series> series = {};
  FigureTable table = {};
  std::vector<FigureCommand> commands = {};
  std::string machine = {};
  std::vector<std::string> notes = {};  // what a reader must know to read it right
};

std::string number_text(double value);  // for tables: three or four significant digits, with commas
TableCell number_cell(double value);
TableCell number_cell(std::optional<double> value);  // none: an empty cell

}  // namespace trireme::report
