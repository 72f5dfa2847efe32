// Images per second over a numeric option: workers (with the ideal line), servers, threads, batches.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/json.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using Figures = std::vector<Figure>;

// Wide ranges such as powers of two: equal ratios at equal distances.
bool reaches_far(const Dimension& dimension, double ratio) {
  const double first = dimension.values.front().get<double>(), last = dimension.values.back().get<double>();
  return first > 0 && dimension.values.size() > 2 && last / first >= ratio;
}

// Workers: the ideal is straight only if both axes are logarithmic, or neither.
bool wants_logarithms(const Study& study) { return reaches_far(*study.dimension("workers"), 32); }

// Split by the first other dimension until the series of each part can be told apart.
std::vector<Study> readable_parts(const Study& study, const std::string& x_option) {
  if (group_apart_from(study, {x_option}).size() <= kMostSeries) return {study};
  std::vector<Study> result;
  for (const Dimension& dimension : study.dimensions) {
    if (dimension.option == x_option) continue;
    for (const Study& part : facets(study, dimension.option)) {
      for (Study& piece : readable_parts(part, x_option)) result.push_back(std::move(piece));
    }
    break;
  }
  return result;
}

Series speed_series(const CellGroup& group, const std::string& x_option) {
  Series series{.name = group.name};
  for (const Cell* cell : group.cells) series.points.push_back(point_of(number_setting(*cell, x_option), cell->speeds));
  return series;
}

Figure speed_figure(const Study& study, const std::string& x_option) {
  Figure figure = figure_of(study, "over-" + slug(x_option), FigureKind::lines, "Speed over " + option_title(x_option));
  figure.x = {.title = option_title(x_option),
              .logarithmic = x_option != "workers" && reaches_far(*study.dimension(x_option), 8)};
  figure.y = {.title = "images/s, all workers together"};
  figure.caption = fmt::format("Images per second over {}. Points are medians; {}.", option_title(x_option), kWhiskers);
  for (const CellGroup& group : group_apart_from(study, {x_option}))
    figure.series.push_back(speed_series(group, x_option));
  return figure;
}

void add_ideal_lines(Figure& figure) {
  const std::size_t measured = figure.series.size();
  for (std::size_t i = 0; i < measured; ++i) {
    const std::vector<Point>& points = figure.series[i].points;
    if (points.size() < 2 || points.front().x <= 0) continue;
    Series ideal{.name = measured == 1 ? "ideal" : figure.series[i].name + ", ideal", .ideal_of = static_cast<int>(i)};
    for (const Point& point : points)
      ideal.points.push_back({.x = point.x, .y = points.front().y * point.x / points.front().x});
    figure.series.push_back(std::move(ideal));
  }
}

Figure efficiency_figure(const Study& study) {
  Figure figure = figure_of(study, "efficiency", FigureKind::lines, "Scaling efficiency");
  figure.x = {.title = option_title("workers"), .logarithmic = wants_logarithms(study)};
  figure.y = {.title = "share of ideal speed (%)"};
  figure.caption =
      "Speed divided by that of the fewest workers, scaled to the number of workers: 100 % is perfect scaling.";
  const std::vector<Efficiency> all = efficiencies(study);
  for (const CellGroup& group : group_apart_from(study, {"workers"})) {
    Series series{.name = group.name};
    for (const Efficiency& efficiency : all) {
      if (std::ranges::find(group.cells, efficiency.cell) == group.cells.end()) continue;
      Point percent = efficiency.share;
      percent.y *= 100;
      if (percent.spread) percent.spread = perf::scaled(*percent.spread, 100);
      series.points.push_back(percent);
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

void add_efficiency_column(Figure& figure, const Study& study) {
  const std::vector<Efficiency> all = efficiencies(study);
  add_column(figure, {"efficiency %", true}, study, [&](const Cell& cell) {
    const auto found = std::ranges::find(all, &cell, &Efficiency::cell);
    return found == all.end() ? TableCell{} : number_cell(100 * found->share.y);
  });
}

}  // namespace

std::vector<Figure> line_figures(const Study& study, const std::string& x_option) {
  Figures figures;
  if (!study.varies_in_numbers(x_option)) return figures;
  for (const Study& part : readable_parts(study, x_option)) {
    if (part.varies_in_numbers(x_option)) figures.push_back(speed_figure(part, x_option));
  }
  return figures;
}

std::vector<Figure> scaling_figures(const Study& study) {
  Figures figures;
  if (!study.varies_in_numbers("workers")) return figures;
  for (const Study& part : readable_parts(study, "workers")) {
    if (!part.varies_in_numbers("workers")) continue;
    Figure speed = speed_figure(part, "workers");
    speed.x.logarithmic = speed.y.logarithmic = wants_logarithms(part);
    add_ideal_lines(speed);
    add_efficiency_column(speed, part);
    Figure efficiency = efficiency_figure(part);
    add_efficiency_column(efficiency, part);
    if (shares_cores(part)) {
      for (Figure* figure : {&speed, &efficiency}) {
        figure->notes.emplace_back(
            "All workers share the cores of this machine; the ideal is what they would reach with cores of their own.");
      }
    }
    figures.push_back(std::move(speed));
    figures.push_back(std::move(efficiency));
  }
  return figures;
}

std::vector<Efficiency> efficiencies(const Study& study) {
  std::vector<Efficiency> result;
  for (const CellGroup& group : group_apart_from(study, {"workers"})) {
    const Cell* base = group.cells.front();  // cells are in the order of the dimension's values
    const double fewest = number_setting(*base, "workers");
    if (fewest <= 0) continue;
    for (const Cell* cell : group.cells) {
      const double workers = number_setting(*cell, "workers"), more = workers / fewest;
      Point share{.x = workers,
                  .y = cell->median_speed() / base->median_speed() / more,
                  .runs = static_cast<int>(cell->speeds.size())};
      if (cell != base && cell->speeds.size() > 1 && base->speeds.size() > 1)
        share.spread = perf::scaled(perf::ratio_interval(cell->speeds, base->speeds), 1 / more);
      result.push_back({cell, base, share});
    }
  }
  return result;
}

bool shares_cores(const Study& study) {
  double fewest = 0, most = 0;
  for (const Cell& cell : study.cells) {
    const Run& run = cell.example();
    const double cores = run.option_or("workers", 1) * run.option_or("num-intra-threads", 0);
    if (cores <= 0) return false;
    fewest = fewest == 0 ? cores : std::min(fewest, cores);
    most = std::max(most, cores);
  }
  return most == fewest && study.varies("workers");
}

}  // namespace trireme::report
