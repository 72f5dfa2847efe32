// A figure as data: what is drawn, the table that goes with it, and where it comes from. Made from studies, training
// and network records; drawn by the renderers (HTML, SVG, Markdown, CSV), which know nothing of what it is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/perf/intervals.hpp"

namespace trireme::report {

// Of captions: what a median's whiskers are (perf::median_interval).
inline constexpr const char* kWhiskers =
    "whiskers hold the true median with 95 % confidence (fewer than 6 samples: their range)";

enum class FigureKind : std::uint8_t { lines, bars, stacked_bars, heat_map };

struct FigureAxis {
  std::string title = {};
  bool logarithmic = false;
  std::vector<std::string> categories = {};  // none: the axis has numbers. x of a point counts them from 0
};

struct Point {
  double x = 0, y = 0;
  std::optional<perf::Interval> spread = {};  // none: a single sample, or nothing measured
  int runs = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points = {};
  // The series, by its place, that this one is a yardstick of (an ideal line): drawn dashed, in that one's colour.
  std::optional<int> ideal_of = {};
  std::optional<int> colour = {};  // its place in the palette; by its place among the series where there is none
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
  std::string id;  // letters, digits, dashes; of one figure in a document
  FigureKind kind = FigureKind::lines;
  std::string title, caption = {};
  std::string subject = {};  // the study that it belongs to, for who sees the figure alone
  FigureAxis x, y;
  std::string row_title = {};  // heat map: what its rows (the series) are
  std::vector<Series> series = {};
  FigureTable table = {};
  std::vector<FigureCommand> commands = {};
  std::string machine = {};
  std::vector<std::string> notes = {};  // what a reader must know to read it right
};

// Numbers as tables have them: three or four digits that mean something, thousands with commas.
std::string number_text(double value);
TableCell number_cell(double value);
TableCell number_cell(std::optional<double> value);  // none: an empty cell

}  // namespace trireme::report
