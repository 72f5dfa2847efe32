#include "trireme/lab/comparison_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/perf/statistics.hpp"
#include "trireme/report/table.hpp"

namespace trireme::lab {
namespace {

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
}

std::vector<double> measured(const Speeds& speeds) {
  std::vector<double> values;
  for (const auto& speed : speeds) {
    if (speed) values.push_back(*speed);
  }
  return values;
}

std::vector<report::Column> columns_of(const Cell& cell) {
  std::vector<report::Column> columns;
  for (const auto& [name, value] : cell.varied.items()) columns.push_back({name});
  columns.push_back({"framework"});
  for (const char* title : {"images/sec", "spread", "peak GB", "Trireme / it", "within a round", "runs"}) {
    columns.push_back({title, report::Align::right});
  }
  return columns;
}

std::vector<std::string> row_of(const Cell& cell, const CellFigures& figures, const std::optional<Ratio>& ratio) {
  const std::vector<double> speeds = measured(figures.images_per_second);
  const perf::Summary speed = perf::summarize(speeds);
  std::vector<std::string> row;
  for (const auto& [name, value] : cell.varied.items()) row.push_back(value_text(value));
  row.push_back(cell.framework);
  row.push_back(speeds.empty() ? "-" : fmt::format("{:.2f}", speed.median));
  row.push_back(speeds.size() < 2 ? "-"
                                  : fmt::format("{:.1f} %", 100 * (speed.maximum - speed.minimum) / speed.median));
  row.push_back(speeds.empty() ? "-" : fmt::format("{:.2f}", perf::median(figures.peak_rss_bytes) / 1e9));
  row.push_back(ratio ? fmt::format("{:.2f}x", ratio->of_medians) : "");
  row.push_back(!ratio              ? ""
                : ratio->rounds < 2 ? "-"
                                    : fmt::format("{:.2f}x to {:.2f}x", ratio->lowest, ratio->highest));
  row.push_back(std::to_string(speeds.size()));
  return row;
}

// Options that change the networks, on all sides.
std::string changes_text(const Configuration& configuration) {
  Configuration changes;
  for (const char* option : {"num-classes", "no-dropout"}) {
    const Json* value = find(configuration, option);
    if (value != nullptr && *value != false) changes.push_back({option, *value});
  }
  return to_text(changes);
}

void add_network(std::vector<std::string>& lines, const Configuration& configuration,
                 const std::vector<Contestant>& contestants) {
  const std::string model = value_text(*find(configuration, "model"));
  const Json& facts = contestants.front().catalog->networks.at(model);
  const std::string changes = changes_text(configuration);
  add_once(lines, fmt::format("{}, the same: {}{}", model, facts.value("same", ""),
                              changes.empty() ? "" : "; changed on all sides: " + changes));
  for (const Contestant& contestant : contestants) {
    for (const Json& difference : facts.value(contestant.framework, Json::array())) {
      add_once(lines, fmt::format("{}, {}: {}", model, contestant.framework, value_text(difference)));
    }
  }
}

bool has_differences(const std::vector<std::string>& lines, const std::string& model) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.starts_with(model + ", ") && !line.starts_with(model + ", the same");
  });
}

}  // namespace

std::string field_text(const Field& field, const std::vector<std::string>& notes) {
  std::string text;
  for (const Contestant& contestant : field.contestants) {
    text += fmt::format("{}: version {} of {}; {}\n", contestant.label, contestant.version, contestant.catalog->python,
                        contestant.configurations.front().what);
  }
  for (const std::string& missing : field.missing) text += "missing: " + missing + "\n";
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

std::string ratio_table(const Comparison& comparison, const std::filesystem::path& folder, int rounds) {
  report::Table table(columns_of(comparison.cells.front()));
  std::vector<std::string> warnings;
  for (const std::vector<std::size_t>& group : comparison.groups) {
    if (&group != &comparison.groups.front()) table.add_rule();
    const Speeds ours = read_figures(folder, comparison.cells[group.front()], rounds).images_per_second;
    for (const std::size_t cell : group) {
      const CellFigures figures = read_figures(folder, comparison.cells[cell], rounds);
      const bool is_own = cell == group.front();
      table.add_row(
          row_of(comparison.cells[cell], figures, is_own ? std::nullopt : ratio_of(ours, figures.images_per_second)));
      for (const std::string& warning : figures.warnings) add_once(warnings, warning);
    }
  }
  std::string text = table.text();
  text +=
      "images/sec: of all workers, the median of the rounds; spread: from the slowest run to the fastest; Trireme / "
      "it:\n"
      "the ratio of the medians of rounds that both have, and the range of the ratios within one; peak: of the "
      "largest\n"
      "process\n";
  for (const std::string& warning : warnings) text += "warning: " + warning + "\n";
  return text;
}

std::vector<std::string> difference_lines(const Comparison& comparison, const std::vector<Contestant>& contestants) {
  std::vector<std::string> lines;
  for (const std::vector<std::size_t>& group : comparison.groups) {
    const Configuration& configuration = comparison.cells[group.front()].configuration;
    add_network(lines, configuration, contestants);
    const std::string model = value_text(*find(configuration, "model"));
    if (!has_differences(lines, model)) add_once(lines, model + ": no difference that we know of between the networks");
  }
  const Json& measurement = contestants.front().catalog->measurement;
  for (const Json& same : measurement.value("same", Json::array())) {
    lines.push_back("measurement, the same: " + value_text(same));
  }
  for (const Json& all : measurement.value("all", Json::array())) lines.push_back("measurement: " + value_text(all));
  for (const Contestant& contestant : contestants) {
    for (const Json& own : measurement.value(contestant.framework, Json::array())) {
      add_once(lines, fmt::format("measurement, {}: {}", contestant.framework, value_text(own)));
    }
  }
  return lines;
}

}  // namespace trireme::lab
