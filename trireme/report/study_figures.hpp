// The figures of a study: which ones suit it, and how each is made. Used by make_document().
#pragma once

#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

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

}  // namespace trireme::report
