// Shared by the figures of studies: points, series, the table of cells, and splitting what is too large for one figure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/report/figure.hpp"
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

}  // namespace trireme::report
