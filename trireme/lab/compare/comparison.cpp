#include "trireme/lab/compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/lab/study/trial.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

constexpr const char* kAll = "all";

const PeerConfiguration* find_configuration(const PeerFramework& framework, const std::string& name) {
  const auto found = std::ranges::find(framework.configurations, name, &PeerConfiguration::name);
  return found == framework.configurations.end() ? nullptr : &*found;
}

// The contestants of one framework that a word selects.
std::vector<Contestant> asked_of(const PeerCatalog& catalog, const PeerFramework& framework, const std::string& word) {
  std::vector<Contestant> found;
  const auto add = [&](const std::string& label, std::vector<PeerConfiguration> configurations) {
    found.push_back({label, framework.name, framework.version, &catalog, std::move(configurations)});
  };
  if (word == kAll) {
    for (const PeerConfiguration& configuration : framework.configurations) add(configuration.name, {configuration});
  } else if (word == framework.name && framework.missing.empty()) {
    add(word, framework.configurations);
  } else if (const PeerConfiguration* configuration = find_configuration(framework, word)) {
    add(word, {*configuration});
  }
  return found;
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

std::vector<std::string> known_names(const std::vector<PeerCatalog>& catalogs) {
  std::vector<std::string> names;
  for (const PeerCatalog& catalog : catalogs) {
    for (const PeerFramework& framework : catalog.frameworks) {
      add_once(names, framework.name);
      for (const PeerConfiguration& configuration : framework.configurations) add_once(names, configuration.name);
    }
  }
  add_once(names, kAll);
  return names;
}

// "pytorch-compile" belongs to pytorch.
bool belongs_to(const std::string& word, const PeerFramework& framework) {
  return word == kAll || word == framework.name || word.starts_with(framework.name + "-");
}

void note_missing(Field& field, const std::vector<PeerCatalog>& catalogs, const std::string& word) {
  for (const PeerCatalog& catalog : catalogs) {
    for (const PeerFramework& framework : catalog.frameworks) {
      if (framework.missing.empty() || !belongs_to(word, framework)) continue;
      field.missing.push_back(
          fmt::format("{}: {} does not have it ({}); install it with tools/setup --peers, or give another interpreter "
                      "with --python",
                      framework.name, catalog.python, framework.missing));
    }
  }
}

// The same framework in two interpreters is told apart by version.
void tell_apart(std::vector<Contestant>& contestants) {
  std::multiset<std::string> labels;
  for (const Contestant& contestant : contestants) labels.insert(contestant.label);
  std::set<std::string> taken;
  for (Contestant& contestant : contestants) {
    if (labels.count(contestant.label) > 1) contestant.label += " " + contestant.version;
    if (!taken.insert(contestant.label).second) {
      bad_input("{} is given twice; name it once in --frameworks, and one interpreter for each version in --python",
                contestant.label);
    }
  }
}

void check_model(const Configuration& configuration, const PeerCatalog& catalog) {
  const Json* model = find(configuration, "model");
  if (catalog.networks.contains(value_text(*model))) return;
  std::vector<std::string> names;
  for (const auto& [name, facts] : catalog.networks.items()) names.push_back(name);
  bad_input("--model: the other frameworks' scripts have no '{}'; they have {}", value_text(*model),
            fmt::join(names, ", "));
}

// Sets every option the work leaves open, so that it means the same to all; its workers share `cores`.
void fill_in(Configuration& configuration, int cores) {
  const auto set = [&](const char* option, Json value) {
    if (find(configuration, option) == nullptr) configuration.push_back({option, std::move(value)});
  };
  set("model", "resnet50");
  set("batch-size", 16);
  set("num-batches", 100);
  set("num-warmup-batches", 3);
  set("max-seconds", 20);
  set("precision", "fp32");
  const auto processes = std::max<std::int64_t>(1, whole_number_of(configuration, "workers", 1));
  set("num-intra-threads", std::max<std::int64_t>(1, cores / processes));
}

StudyCell contestant_cell(const StudyCell& work, const std::string& label) {
  StudyCell cell = work;
  cell.framework = label;
  Json named = work.varied;
  named["framework"] = label;
  cell.slug = slug_of(named);
  return cell;
}

const PeerConfiguration* able_one(const Contestant& contestant, const Configuration& configuration) {
  const auto found = std::ranges::find_if(
      contestant.configurations, [&](const PeerConfiguration& candidate) { return candidate.can_run(configuration); });
  return found == contestant.configurations.end() ? nullptr : &*found;
}

std::string inability(const Contestant& contestant, const StudyCell& work) {
  return fmt::format("{} cannot do {} (forward-only, precision, device or number of workers): left out there",
                     contestant.label, cell_text(work));
}

std::vector<double> measured(const Speeds& speeds) {
  std::vector<double> values;
  for (const auto& speed : speeds) {
    if (speed) values.push_back(*speed);
  }
  return values;
}

// From the records of a cell.
struct CellFigures {
  Speeds images_per_second;           // by round
  std::vector<double> peak_bytes;     // of memory: of the host's, or of the GPU's in runs on one
  std::vector<std::string> warnings;  // each once
};

CellFigures read_figures(const std::filesystem::path& folder, const StudyCell& cell, int rounds) {
  CellFigures figures;
  for (int round = 1; round <= rounds; ++round) {
    figures.images_per_second.emplace_back();
    const auto record = read_run(folder, {cell.slug, round});
    if (!record || record->error || !(record->images_per_second() > 0)) continue;
    figures.images_per_second.back() = record->images_per_second();
    const auto on_gpu = number_field(record->machine.gpu, {"training_bytes"});
    figures.peak_bytes.push_back(on_gpu ? *on_gpu : static_cast<double>(record->results.peak_rss_bytes));
    const Json warnings = field(record->build, {"warnings"});
    for (const Json& warning : warnings) add_once(figures.warnings, value_text(warning));
  }
  return figures;
}

std::vector<Column> columns_of(const StudyCell& cell) {
  std::vector<Column> columns;
  for (const auto& [name, value] : cell.varied.items()) columns.push_back({name});
  columns.push_back({"framework"});
  for (const char* title : {"images/sec", "spread", "peak GB", "Trireme / it", "within a round", "runs"}) {
    columns.push_back({title, Align::right});
  }
  return columns;
}

std::vector<std::string> row_of(const StudyCell& cell, const CellFigures& figures, const std::optional<Ratio>& ratio) {
  const std::vector<double> speeds = measured(figures.images_per_second);
  const perf::Summary speed = perf::summarize(speeds);
  std::vector<std::string> row;
  for (const auto& [name, value] : cell.varied.items()) row.push_back(value_text(value));
  row.push_back(cell.framework);
  row.push_back(speeds.empty() ? "-" : fmt::format("{:.2f}", speed.median));
  row.push_back(speeds.size() < 2 ? "-"
                                  : fmt::format("{:.1f} %", 100 * (speed.maximum - speed.minimum) / speed.median));
  row.push_back(speeds.empty() ? "-" : fmt::format("{:.2f}", perf::median(figures.peak_bytes) / 1e9));
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
  return std::ranges::any_of(lines, [&](const std::string& line) {
    return line.starts_with(model + ", ") && !line.starts_with(model + ", the same");
  });
}

}  // namespace

Field choose_contestants(const std::vector<PeerCatalog>& catalogs, const std::vector<std::string>& wanted) {
  Field field;
  for (const std::string& word : wanted) {
    const std::size_t before = field.contestants.size();
    bool is_known = word == kAll;
    for (const PeerCatalog& catalog : catalogs) {
      for (const PeerFramework& framework : catalog.frameworks) {
        const std::vector<Contestant> asked = asked_of(catalog, framework, word);
        field.contestants.insert(field.contestants.end(), asked.begin(), asked.end());
        is_known = is_known || !asked.empty() || (!framework.missing.empty() && belongs_to(word, framework));
      }
    }
    if (!is_known) {
      bad_input("--frameworks: unknown framework '{}'; choose from {}", word, fmt::join(known_names(catalogs), ", "));
    }
    if (word == kAll || field.contestants.size() == before) note_missing(field, catalogs, word);
  }
  tell_apart(field.contestants);
  return field;
}

FrameworkComparison make_comparison(const std::vector<StudyCell>& works, const std::vector<Contestant>& contestants,
                                    const Configuration& only_trireme, int cores) {
  FrameworkComparison comparison;
  std::size_t peers = 0;
  for (StudyCell work : works) {
    fill_in(work.configuration, cores);
    std::vector<std::size_t> group{comparison.cells.size()};
    comparison.cells.push_back(contestant_cell(work, "trireme"));
    Configuration& own = comparison.cells.back().configuration;
    own.insert(own.end(), only_trireme.begin(), only_trireme.end());
    for (const Contestant& contestant : contestants) {
      check_model(work.configuration, *contestant.catalog);
      const PeerConfiguration* able = able_one(contestant, work.configuration);
      if (able == nullptr) {
        comparison.left_out.push_back(inability(contestant, work));
        continue;
      }
      group.push_back(comparison.cells.size());
      comparison.cells.push_back(contestant_cell(work, contestant.label));
      comparison.cells.back().peer_command = peer_command(*contestant.catalog, *able, work.configuration);
      add_once(comparison.ways, fmt::format("{}: version {} of {}; {}", contestant.label, contestant.version,
                                            contestant.catalog->python, able->what));
      ++peers;
    }
    comparison.groups.push_back(std::move(group));
  }
  if (peers == 0)
    fail(ErrorKind::unavailable, "no other framework can do this: {}", fmt::join(comparison.left_out, "; "));
  return comparison;
}

std::optional<Ratio> ratio_of(const Speeds& ours, const Speeds& theirs) {
  std::vector<double> our_speeds, their_speeds, ratios;
  for (std::size_t round = 0; round < std::min(ours.size(), theirs.size()); ++round) {
    if (!ours[round] || !theirs[round]) continue;
    our_speeds.push_back(*ours[round]);
    their_speeds.push_back(*theirs[round]);
    ratios.push_back(*ours[round] / *theirs[round]);
  }
  if (ratios.empty()) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax_element(ratios);
  return Ratio{perf::median(our_speeds) / perf::median(their_speeds), *lowest, *highest, ratios.size()};
}

std::string field_text(const Field& field, const FrameworkComparison& comparison,
                       const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& way : comparison.ways) text += way + "\n";
  for (const std::string& missing : field.missing) text += "missing: " + missing + "\n";
  for (const std::string& note : notes) text += "note: " + note + "\n";
  for (const std::string& left_out : comparison.left_out) text += "note: " + left_out + "\n";
  return text;
}

std::string ratio_table(const FrameworkComparison& comparison, const std::filesystem::path& folder, int rounds) {
  TextTable table(columns_of(comparison.cells.front()));
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
      "the ratio of the medians over rounds that both have, with the range of the ratios within a round; peak: of the\n"
      "largest process, or on a GPU\n";
  for (const std::string& warning : warnings) text += "warning: " + warning + "\n";
  return text;
}

std::vector<std::string> difference_lines(const FrameworkComparison& comparison,
                                          const std::vector<Contestant>& contestants) {
  std::vector<std::string> lines;
  for (const std::vector<std::size_t>& group : comparison.groups) {
    const Configuration& configuration = comparison.cells[group.front()].configuration;
    add_network(lines, configuration, contestants);
    const std::string model = value_text(*find(configuration, "model"));
    if (!has_differences(lines, model)) add_once(lines, model + ": no known difference between the networks");
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
