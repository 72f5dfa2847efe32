// What the figures of studies have in common: points with their spread, series by what varies, the table of cells, and
// studies cut into smaller ones where one figure would hold too much.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

inline constexpr std::size_t kMostSeries = 8;  // that eyes and palettes can tell apart

// The median, with its interval.
Point point_of(double x, std::vector<double> samples);

// Without series: identity, machine, commands and notes of the cells, and a table with a row per cell.
Figure figure_of(const Study& study, const std::string& suffix, FigureKind kind, const std::string& title);

// More columns for the table of a figure with a row per cell.
void add_column(Figure& figure, const TableColumn& column, const Study& study,
                const std::function<TableCell(const Cell& cell)>& value);

struct CellGroup {
  std::string name;  // of the settings that its cells share
  std::vector<const Cell*> cells;
};
// Cells that differ in these options alone, in the order of the study.
std::vector<CellGroup> group_apart_from(const Study& study, const std::vector<std::string>& options);
std::vector<CellGroup> group_apart_from(const std::vector<const Cell*>& cells, const std::vector<std::string>& options);

// The study with one value of an option each; dimensions that then have one value are gone.
std::vector<Study> facets(const Study& study, const std::string& option);

// Settings of a cell less some options.
Json settings_without(const Cell& cell, const std::vector<std::string>& options);

double number_setting(const Cell& cell, const std::string& option);

}  // namespace trireme::report
