// Pieces of the page: tables, commands, figures with all that belongs to them. Used by html.cpp.
#pragma once

#include <string>

#include "trireme/report/figure.hpp"

namespace trireme::report {

// A table that sorts and can be copied.
std::string html_table(const FigureTable& table, const std::string& label);
// A command line that can be copied.
std::string html_command(const std::string& command);
// Title, drawing or heat map, notes, table, commands, machine.
std::string html_figure(const Figure& figure);
// What the script draws, as JSON that may stand inside a script element.
std::string chart_data(const Figure& figure);

}  // namespace trireme::report
