// The figures of a study, which ones suit it, and what they are made of: points, series, tables, groups of cells, the
// time of a step. Also the figures of trainings and networks. Used by make_document() and by findings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/record_set.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

inline constexpr std::size_t kMostSeries = 8;  // that can be told apart

Point point_of(double x, std::vector<double> samples);  // the median with its interval

// No series yet: identity, machine, commands and notes of the cells, and a table with a row per cell.
Figure figure_of(const Study& study, const std::string& suffix, FigureKind kind, const std::string& title);

// Adds a column to such a table.
void add_column(Figure& figure, const TableColumn& column, const Study& study,
                const std::function<TableCell(const Cell& cell)>& value);

struct CellGroup {
  std::string name;  // of the settings its cells share
  std::vector<const Cell*> cells;
};
// Cells that differ in these options only, in study order.
std::vector<CellGroup> group_apart_from(const Study& study, const std::vector<std::string>& options);
std::vector<CellGroup> group_apart_from(const std::vector<const Cell*>& cells, const std::vector<std::string>& options);

// One study per value of an option; dimensions left with one value are dropped.
std::vector<Study> facets(const Study& study, const std::string& option);

Json settings_without(const Cell& cell, const std::vector<std::string>& options);

double number_setting(const Cell& cell, const std::string& option);

// The figure the study asks for if possible, else suitable ones; then time breakdown and input cost if measured.
std::vector<Figure> study_figures(const Study& study);

// Empty without the variation or measurement in the name. Several figures if one would hold too many series.
std::vector<Figure> line_figures(const Study& study, const std::string& x_option);  // images/s over a number
std::vector<Figure> scaling_figures(const Study& study);                            // workers: speed, efficiency
std::vector<Figure> bar_figures(const Study& study);                                // images/s of anything
std::vector<Figure> heat_map_figures(const Study& study);                           // two numbers
std::vector<Figure> forward_backward_figures(const Study& study);                   // ms per batch, frameworks
std::vector<Figure> io_overhead_figures(const Study& study);                        // percent, over workers
std::vector<Figure> breakdown_figures(const Study& study);                          // ms per step, stacked

// A cell's speed / (speed of the cell with fewest workers in its row x how many times more workers it has).
struct Efficiency {
  const Cell* cell = nullptr;
  const Cell* base = nullptr;
  Point share;  // x: workers; y: 1 is ideal
};
std::vector<Efficiency> efficiencies(const Study& study);
bool shares_cores(const Study& study);  // more workers do not add cores

// Seconds per step of one rank, medians over runs. Compute includes the optimizer if that is not known separately.
struct RankTime {
  double compute = 0, exposed_communication = 0, input_wait = 0, optimizer = 0, idle = 0;
  bool optimizer_known = false;

  double total() const { return compute + exposed_communication + input_wait + optimizer + idle; }
};

std::vector<RankTime> rank_times(const Cell& cell);   // empty if parts of a step overlapped
std::optional<RankTime> mean_time(const Cell& cell);  // mean over ranks

std::vector<double> io_overheads(const Cell& cell);      // percent, per run or, for a single run, per repeat
std::vector<double> run_io_overheads(const Cell& cell);  // one per run, for tests (Cell::run_speeds)

struct TimePart {
  std::string name;
  double RankTime::*seconds;
};
const std::vector<TimePart>& time_parts();

// Loss over epochs and over time, and accuracy over epochs if known; a series per record.
std::vector<Figure> training_figures(const std::vector<Training>& records);

// Bandwidth over message size between pairs, and bus bandwidth of all-reduce; both axes logarithmic.
std::vector<Figure> network_figures(const std::vector<Network>& records);

}  // namespace trireme::report
