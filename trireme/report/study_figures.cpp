#include "trireme/report/study_figures.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/json.hpp"
#include "trireme/perf/statistics.hpp"

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

FigureTable cell_table(const Study& study) {
  FigureTable table;
  for (const Dimension& dimension : study.dimensions)
    table.columns.push_back({option_title(dimension.option), dimension.is_numeric()});
  if (study.dimensions.empty()) table.columns.push_back({"configuration"});
  table.columns.push_back({"images/s", true});
  table.columns.push_back({"from", true});
  table.columns.push_back({"to", true});
  table.columns.push_back({"interval"});
  table.columns.push_back({"runs", true});
  for (const Cell& cell : study.cells) {
    std::vector<TableCell> row;
    for (const Dimension& dimension : study.dimensions) {
      const Json value = field(cell.settings, {dimension.option.c_str()});
      row.push_back(dimension.option == "forward-only" ? TableCell{setting_text(dimension.option, value)}
                                                       : TableCell{value_text(value), value_number(value)});
    }
    if (study.dimensions.empty()) row.push_back({cell.label});
    const Point point = point_of(0, cell.speeds);
    row.push_back(number_cell(point.y));
    row.push_back(point.spread ? number_cell(point.spread->low) : TableCell{});
    row.push_back(point.spread ? number_cell(point.spread->high) : TableCell{});
    row.push_back(point.spread ? TableCell{kind_text(*point.spread)} : TableCell{});
    row.push_back(number_cell(static_cast<double>(cell.speeds.size())));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string machines_of(const Study& study) {
  std::set<std::string> machines, gpus;
  for (const Cell& cell : study.cells) {
    for (const Run& run : cell.runs) {
      if (run.machine_line != record::kUnknownMachine) machines.insert(run.machine_line);
      if (!run.gpu.empty()) gpus.insert(run.gpu);
    }
  }
  if (machines.empty()) return "not recorded";
  return fmt::format("{}{}{}", fmt::join(machines, "; "), gpus.empty() ? "" : "; ", fmt::join(gpus, "; "));
}

void add_sample_notes(const Study& study, Figure& figure) {
  std::size_t fewest = study.cells.front().speeds.size(), most = fewest;
  bool one_run = false;
  for (const Cell& cell : study.cells) {
    fewest = std::min(fewest, cell.speeds.size());
    most = std::max(most, cell.speeds.size());
    one_run |= cell.is_one_run();
  }
  if (fewest == 1) figure.notes.emplace_back("Some configurations were measured only once and have no spread.");
  if (fewest != most)
    figure.notes.push_back(fmt::format("Configurations have between {} and {} measurements each.", fewest, most));
  if (one_run) {
    figure.notes.emplace_back(
        "The spread is that of repeats inside one process; it leaves out differences between starts.");
  }
}

}  // namespace

std::vector<Figure> study_figures(const Study& study) {
  if (study.cells.empty()) return {};
  return speed_figures(study);
}

Point point_of(double x, std::vector<double> samples) {
  Point point{.x = x, .y = perf::median(samples), .spread = {}, .runs = static_cast<int>(samples.size())};
  if (samples.size() > 1) point.spread = perf::median_interval(samples);
  return point;
}

Figure figure_of(const Study& study, const std::string& suffix, FigureKind kind, const std::string& title) {
  Figure figure{.id = fmt::format("{}-{}", study.id, suffix), .kind = kind, .title = title, .x = {}, .y = {}};
  if (!study.facet.empty()) figure.title += fmt::format(" · {}", study.facet);
  figure.subject = study.title;
  figure.machine = machines_of(study);
  figure.table = cell_table(study);
  for (const Cell& cell : study.cells) figure.commands.push_back({cell.label, cell.example().repeat_command});
  add_sample_notes(study, figure);
  return figure;
}

void add_column(Figure& figure, const TableColumn& column, const Study& study,
                const std::function<TableCell(const Cell& cell)>& value) {
  figure.table.columns.push_back(column);
  for (std::size_t i = 0; i < study.cells.size(); ++i) figure.table.rows[i].push_back(value(study.cells[i]));
}

Json settings_without(const Cell& cell, const std::vector<std::string>& options) {
  Json settings = Json::object();
  for (const auto& [option, value] : cell.settings.items()) {
    if (std::ranges::find(options, option) == options.end()) settings[option] = value;
  }
  return settings;
}

std::vector<CellGroup> group_apart_from(const Study& study, const std::vector<std::string>& options) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : study.cells) cells.push_back(&cell);
  return group_apart_from(cells, options);
}

std::vector<CellGroup> group_apart_from(const std::vector<const Cell*>& cells,
                                        const std::vector<std::string>& options) {
  std::vector<CellGroup> groups;
  std::vector<Json> shared;
  for (const Cell* cell : cells) {
    const Json settings = settings_without(*cell, options);
    const auto found = std::ranges::find(shared, settings);
    const auto place = static_cast<std::size_t>(found - shared.begin());
    if (found == shared.end()) {
      shared.push_back(settings);
      const std::string name = settings_text(settings);
      groups.push_back({.name = name.empty() ? "measured" : name, .cells = {}});
    }
    groups[place].cells.push_back(cell);
  }
  return groups;
}

std::vector<Study> facets(const Study& study, const std::string& option) {
  std::vector<Study> parts;
  for (const Json& value : study.dimension(option)->values) {
    Study part = study;
    part.cells.clear();
    part.failed.clear();
    for (const Cell& cell : study.cells) {
      // Cells without this setting (such as another framework's) appear beside each value.
      if (cell.settings.contains(option) && field(cell.settings, {option.c_str()}) != value) continue;
      Cell kept = cell;
      kept.settings = settings_without(cell, {option});
      part.cells.push_back(std::move(kept));
    }
    part.id += fmt::format("-{}", slug(setting_text(option, value)));
    if (!part.facet.empty()) part.facet += ", ";
    part.facet += setting_text(option, value);
    part.dimensions.clear();
    for (Dimension dimension : study.dimensions) {
      if (dimension.option == option) continue;
      std::erase_if(dimension.values, [&](const Json& other) {
        return std::ranges::none_of(
            part.cells, [&](const Cell& cell) { return field(cell.settings, {dimension.option.c_str()}) == other; });
      });
      if (dimension.values.size() > 1) part.dimensions.push_back(std::move(dimension));
    }
    for (Cell& cell : part.cells) {
      Json settings = Json::object();
      for (const Dimension& dimension : part.dimensions) {
        if (cell.settings.contains(dimension.option))
          settings[dimension.option] = field(cell.settings, {dimension.option.c_str()});
      }
      cell.settings = std::move(settings);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

double number_setting(const Cell& cell, const std::string& option) {
  return value_number(field(cell.settings, {option.c_str()})).value_or(0);
}

}  // namespace trireme::report
