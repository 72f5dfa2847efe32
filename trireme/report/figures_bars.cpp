// Images per second of configurations side by side: bars, and heat maps over two numbers. Forward versus forward and
// backward, per framework.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/json.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using Figures = std::vector<Figure>;

// The dimension shown by color: the last that is not numeric, else the last.
std::string colour_dimension(const Study& study) {
  std::string chosen;
  for (const Dimension& dimension : study.dimensions) {
    if (!dimension.is_numeric() && dimension.values.size() <= kMostSeries) chosen = dimension.option;
  }
  if (chosen.empty() && study.dimensions.back().values.size() <= kMostSeries) chosen = study.dimensions.back().option;
  return chosen;
}

// Bars of the cells: an x position per combination of the other dimensions, a series per value of `colours`. bar_of
// gives a cell's bar.
template <typename Bar>
void add_bars(const Study& study, const std::vector<std::string>& colours, Figure& figure, Bar bar_of) {
  std::vector<std::string> others;
  for (const Dimension& dimension : study.dimensions) {
    if (std::ranges::find(colours, dimension.option) == colours.end()) others.push_back(dimension.option);
  }
  const auto place_of = [&](const Cell& cell) {
    const std::string place = settings_text(settings_without(cell, colours));
    return place.empty() ? cell.example().option_text("model") : place;
  };
  std::vector<std::string> places;
  for (const Cell& cell : study.cells) {
    const std::string place = place_of(cell);
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
  figure.x.categories = places;
  for (const CellGroup& group : group_apart_from(study, others)) {
    Series series{.name = group.name};
    for (const Cell* cell : group.cells) {
      const auto x = std::ranges::find(places, place_of(*cell)) - places.begin();
      series.points.push_back(bar_of(*cell, static_cast<double>(x)));
    }
    figure.series.push_back(std::move(series));
  }
}

// From the cell's speed: the median of an even number of times is not the time at the median speed.
Point milliseconds_per_batch(const Cell& cell, double x) {
  Point point = point_of(x, cell.speeds);
  const double images = 1000 * cell.example().effective_batch();
  point.y = images / point.y;
  if (point.spread)
    point.spread = perf::Interval{images / point.spread->high, images / point.spread->low, point.spread->is_range};
  return point;
}

Figure heat_map(const Study& study, const Dimension& across, const Dimension& down) {
  Figure figure = figure_of(study, "heat-map", FigureKind::heat_map,
                            fmt::format("Speed by {} and {}", option_title(down.option), option_title(across.option)));
  figure.caption = fmt::format("Images per second for each {} and {}. Medians; the darker, the faster.",
                               option_title(across.option), option_title(down.option));
  figure.x.title = option_title(across.option);
  figure.y.title = "images/s, all workers together";
  figure.row_title = option_title(down.option);
  for (const Json& value : across.values) figure.x.categories.push_back(value_text(value));
  for (const Json& row : down.values) {
    Series series{.name = value_text(row)};
    for (std::size_t column = 0; column < across.values.size(); ++column) {
      const Cell* cell = study.find({{down.option, row}, {across.option, across.values[column]}});
      if (cell == nullptr) cell = study.find({{across.option, across.values[column]}, {down.option, row}});
      if (cell != nullptr) series.points.push_back(point_of(static_cast<double>(column), cell->speeds));
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

}  // namespace

std::vector<Figure> bar_figures(const Study& study) {
  Figure figure = figure_of(study, "bars", FigureKind::bars, "Images per second");
  figure.y.title = "images/s, all workers together";
  figure.caption = fmt::format("Medians; {}.", kWhiskers);
  std::vector<std::string> colours;
  if (study.dimensions.size() > 1) colours.push_back(colour_dimension(study));
  add_bars(study, colours, figure, [](const Cell& cell, double x) { return point_of(x, cell.speeds); });
  if (figure.series.size() == 1) figure.series.front().name = "images/s";
  return {std::move(figure)};
}

std::vector<Figure> heat_map_figures(const Study& study) {
  const std::vector<const Dimension*> numeric = study.numeric_dimensions();
  if (numeric.size() < 2) return {};
  // Every other dimension gets separate maps.
  for (const Dimension& dimension : study.dimensions) {
    if (&dimension == numeric[0] || &dimension == numeric[1]) continue;
    Figures figures;
    for (const Study& part : facets(study, dimension.option)) {
      for (Figure& figure : heat_map_figures(part)) figures.push_back(std::move(figure));
    }
    return figures;
  }
  return {heat_map(study, *numeric[1], *numeric[0])};
}

std::vector<Figure> forward_backward_figures(const Study& study) {
  for (const Cell& cell : study.cells) {
    if (cell.example().effective_batch() <= 0) return {};  // timing needs a known batch
  }
  Figure figure = figure_of(study, "time-per-batch", FigureKind::bars, "Time per batch");
  figure.y.title = "ms per batch (lower is better)";
  figure.caption =
      fmt::format("Time of one batch: forward alone, and with backward and update. Medians; {}.", kWhiskers);
  std::vector<std::string> colours;
  for (const char* option : {"framework", "forward-only"}) {
    if (study.varies(option)) colours.emplace_back(option);
  }
  add_bars(study, colours, figure, milliseconds_per_batch);
  if (figure.series.size() > kMostSeries) return {};
  add_column(figure, {"ms per batch", true}, study,
             [](const Cell& cell) { return number_cell(milliseconds_per_batch(cell, 0).y); });
  return {std::move(figure)};
}

}  // namespace trireme::report
