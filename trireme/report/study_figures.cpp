#include "trireme/report/study_figures.hpp"

#include <algorithm>

#include "trireme/report/figure_parts.hpp"

namespace trireme::report {
namespace {

using Figures = std::vector<Figure>;

void append(Figures& figures, Figures more) {
  figures.insert(figures.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Figures asked_for(const Study& study) {
  if (study.kind == "scaling") return scaling_figures(study);
  if (study.kind == "heatmap") return heat_map_figures(study);
  if (study.kind == "bars") return bar_figures(study);
  if (study.kind == "servers") return line_figures(study, "ps");
  if (study.kind == "io_overhead") return io_overhead_figures(study);
  if (study.kind == "forward_backward") return forward_backward_figures(study);
  if (study.kind == "lines") {
    const auto numeric = study.numeric_dimensions();
    return numeric.empty() ? Figures{} : line_figures(study, numeric.front()->option);
  }
  return {};
}

Figures suitable(const Study& study) {
  const auto numeric = study.numeric_dimensions();
  if (study.varies("forward-only") || study.varies("framework")) return forward_backward_figures(study);
  Figures figures;
  if (study.varies_in_numbers("ps")) append(figures, line_figures(study, "ps"));
  if (study.varies_in_numbers("workers") && figures.empty()) append(figures, scaling_figures(study));
  if (numeric.size() >= 2) append(figures, heat_map_figures(study));
  if (figures.empty() && numeric.size() == 1) append(figures, line_figures(study, numeric.front()->option));
  if (figures.empty()) append(figures, bar_figures(study));
  return figures;
}

Figures speed_figures(const Study& study) {
  for (const char* origin : {"machine", "gpu", "build"}) {  // never in one figure
    if (!study.varies(origin)) continue;
    Figures figures;
    for (const Study& part : facets(study, origin)) append(figures, speed_figures(part));
    return figures;
  }
  Figures figures = asked_for(study);
  if (figures.empty()) figures = suitable(study);
  append(figures, breakdown_figures(study));
  if (study.kind != "io_overhead") append(figures, io_overhead_figures(study));
  return figures;
}

}  // namespace

std::vector<Figure> study_figures(const Study& study) {
  if (study.cells.empty()) return {};
  return speed_figures(study);
}

}  // namespace trireme::report
