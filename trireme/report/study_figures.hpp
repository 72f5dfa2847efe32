// The figures of a study: which ones suit it, and each of them. Used by make_document().
#pragma once

#include <vector>

#include "trireme/report/figure.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {

// The figure that the study asks for, where it can be drawn; otherwise those that suit what varies. Then where the time
// goes and what input costs, where that was measured. A study without cells has none.
std::vector<Figure> study_figures(const Study& study);

// Each needs what its name says to vary, or to be measured; none otherwise. Where one figure would hold more series
// than can be told apart, there are several.
std::vector<Figure> line_figures(const Study& study, const std::string& x_option);  // images/s over a number
std::vector<Figure> scaling_figures(const Study& study);                            // workers: speed, efficiency
std::vector<Figure> bar_figures(const Study& study);                                // images/s of anything
std::vector<Figure> heat_map_figures(const Study& study);                           // two numbers
std::vector<Figure> forward_backward_figures(const Study& study);                   // ms per batch, frameworks
std::vector<Figure> io_overhead_figures(const Study& study);                        // percent, over workers
std::vector<Figure> breakdown_figures(const Study& study);                          // ms per step, stacked

// Speed of a cell by that of the one with fewest workers in its row, times how many more workers it has.
struct Efficiency {
  const Cell* cell = nullptr;
  const Cell* base = nullptr;
  Point share;  // x: workers; y: 1 is ideal
};
std::vector<Efficiency> efficiencies(const Study& study);
// All cells share the same cores: more workers do not bring more of them.
bool shares_cores(const Study& study);

}  // namespace trireme::report
