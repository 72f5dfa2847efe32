#include "trireme/report/document.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/json.hpp"
#include "trireme/report/findings.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

template <typename T>
void append(std::vector<T>& list, std::vector<T> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Names that differ only in punctuation may give the same id; a link must find one figure.
void make_unique(std::vector<Figure>& figures, std::set<std::string>& taken) {
  for (Figure& figure : figures) {
    const std::string wanted = figure.id;
    for (int number = 2; !taken.insert(figure.id).second; ++number) figure.id = fmt::format("{}-{}", wanted, number);
  }
}

void add_study(const Study& study, std::set<std::string>& taken, Document& document) {
  Section section{.title = study.title, .question = study.question, .source = study.source, .figures = {}};
  section.figures = study_figures(study);
  make_unique(section.figures, taken);
  append(document.findings, comparison_findings(study, section.figures));
  append(document.findings, fact_findings(study, section.figures));
  document.sections.push_back(std::move(section));
}

std::string title_of(const RecordSet& records, const std::vector<Study>& studies) {
  if (studies.size() == 1 && studies.front().title != "Runs") return studies.front().title;
  std::set<std::string> hosts;
  for (const Run& run : records.runs) hosts.insert(run.machine.host);
  const bool is_one = hosts.size() == 1 && !hosts.begin()->empty();
  return is_one ? fmt::format("Performance on {}", *hosts.begin()) : "Performance report";
}

// "2024-05-01 12:30"
std::string minute_text(const std::string& rfc3339_time) {
  std::string text = rfc3339_time.substr(0, 16);
  std::ranges::replace(text, 'T', ' ');
  return text;
}

std::string joined(const std::set<std::string>& values) { return fmt::format("{}", fmt::join(values, "; ")); }

}  // namespace

Finding tested(Claim claim, std::vector<std::string> subjects, const perf::Comparison& comparison,
               const std::string& figure) {
  using Kind = Finding::Kind;
  Finding finding{.claim = std::move(claim),
                  .subjects = std::move(subjects),
                  .verdict = comparison.verdict,
                  .ratio = comparison.ratio,
                  .p = comparison.p,
                  .figure = figure};
  finding.kind = comparison.verdict == perf::Verdict::larger    ? Kind::shown
                 : comparison.verdict == perf::Verdict::smaller ? Kind::worse
                                                                : Kind::not_shown;
  if (comparison.interval.high > 0) finding.interval = comparison.interval;
  return finding;
}

std::vector<const Figure*> Document::figures() const {
  std::vector<const Figure*> all;
  for (const Section& section : sections) {
    for (const Figure& figure : section.figures) all.push_back(&figure);
  }
  return all;
}

const Figure* Document::figure(const std::string& id) const {
  for (const Figure* candidate : figures()) {
    if (candidate->id == id) return candidate;
  }
  return nullptr;
}

Document make_document(const RecordSet& records) {
  const std::vector<Study> studies = make_studies(records);
  Document document{.title = title_of(records, studies),
                    .facts = facts_of(records),
                    .warnings = warnings_of(records, studies),
                    .findings = {},
                    .guidelines = {},
                    .sections = {},
                    .runs = runs_table(studies),
                    .files = files_of(records)};
  std::set<std::string> taken;
  std::vector<StudyFigure> first_figures;
  for (const Study& study : studies) {
    add_study(study, taken, document);
    first_figures.push_back({&study, figure_ending(document.sections.back().figures, "")});
  }
  document.guidelines = guidelines_of(first_figures);
  if (std::vector<Figure> figures = training_figures(records.trainings); !figures.empty()) {
    make_unique(figures, taken);
    append(document.findings, training_findings(records.trainings, figures));
    document.sections.push_back({.title = "Training", .figures = std::move(figures)});
  }
  if (std::vector<Figure> figures = network_figures(records.networks); !figures.empty()) {
    make_unique(figures, taken);
    append(document.findings, network_findings(figures));
    document.sections.push_back({.title = "Network", .figures = std::move(figures)});
  }
  // Supported findings first, open ones last.
  const auto place = [](const Finding& finding) {
    return finding.kind == Finding::Kind::not_shown ? 2 : finding.kind == Finding::Kind::fact ? 1 : 0;
  };
  std::ranges::stable_sort(document.findings, {}, place);
  return document;
}

// "pipeline:2, 8 micro-batches, 1f1b, bubbles 10.1 %, 12.3 %"; empty: none.
std::string pipeline_text(const Run& run) {
  if (!run.pipeline) return "";
  const record::Pipeline& pipeline = *run.pipeline;
  std::vector<std::string> shares;
  for (const double share : pipeline.bubble_share) shares.push_back(fmt::format("{:.1f} %", 100 * share));
  return fmt::format("{}, {} micro-batches, {}{}{}", pipeline.parallel, pipeline.micro_batches, pipeline.schedule,
                     shares.empty() ? "" : ", bubbles ", fmt::join(shares, ", "));
}

FigureTable runs_table(const std::vector<Study>& studies) {
  std::set<std::string> options;
  bool has_pipelines = false, has_predictions = false;
  const auto look_at = [&](const Run& run) {
    has_pipelines = has_pipelines || run.pipeline;
    has_predictions = has_predictions || run.predicted_images_per_second();
  };
  for (const Study& study : studies) {
    for (const Dimension& dimension : study.dimensions) options.insert(dimension.option);
    for (const Cell& cell : study.cells) std::ranges::for_each(cell.runs, look_at);
  }
  options.erase("framework");
  FigureTable table{.columns = {{"study"}, {"framework"}}, .rows = {}};
  for (const std::string& option : options) table.columns.push_back({option});
  if (has_pipelines) table.columns.push_back({"stages"});
  if (has_predictions) table.columns.push_back({"predicted images/s", true});
  for (const char* title : {"images/s", "utilisation %"}) table.columns.push_back({title, true});
  for (const char* title : {"started", "machine", "build", "error", "command"}) table.columns.push_back({title});

  const auto add = [&](const Study& study, const Run& run, const Json& settings) {
    std::vector<TableCell> row{{study.title}, {run.framework}};
    for (const std::string& option : options) {
      Json value = field(settings, {option.c_str()});
      if (value.is_null()) value = field(run.cell, {option.c_str()});
      if (value.is_null()) value = field(run.options, {option.c_str()});
      row.push_back(value.is_null() ? TableCell{} : TableCell{value_text(value), value_number(value)});
    }
    if (has_pipelines) row.push_back({pipeline_text(run)});
    const auto predicted = run.predicted_images_per_second();
    if (has_predictions) row.push_back(predicted ? number_cell(*predicted) : TableCell{});
    row.push_back(run.images_per_second() > 0 ? number_cell(run.images_per_second()) : TableCell{});
    row.push_back(run.results.utilisation ? number_cell(100 * *run.results.utilisation) : TableCell{});
    const std::string error = run.error ? *run.error : run.interrupted ? "interrupted" : "";
    for (const std::string& text : {run.started, run.machine_line, run.build_line, error, run.repeat_command})
      row.push_back({text});
    table.rows.push_back(std::move(row));
  };
  for (const Study& study : studies) {
    for (const Cell& cell : study.cells) {
      for (const Run& run : cell.runs) add(study, run, cell.settings);
    }
    for (const Run& run : study.failed) add(study, run, nullptr);
  }
  return table;
}

std::vector<std::pair<std::string, std::string>> facts_of(const RecordSet& records) {
  std::set<std::string> machines, gpus, systems, builds, compilers, times;
  const auto keep = [](const std::string& text, std::set<std::string>& values) {
    if (!text.empty()) values.insert(text);
  };
  const auto add = [&](const auto& record) {
    const record::Machine& machine = record.machine;
    if (machine.host_line() != record::kUnknownMachine) machines.insert(machine.host_line());
    keep(machine.gpu_name(), gpus);
    keep(machine.os.empty() || machine.kernel.empty() ? machine.os + machine.kernel
                                                      : fmt::format("{}, {}", machine.os, machine.kernel),
         systems);
    if (record.build.is_object()) {
      builds.insert(record::build_line(record.build));
      keep(text_field(record.build, {"compiler"}), compilers);
    }
    keep(record.started, times);
  };
  std::ranges::for_each(records.runs, add);
  std::ranges::for_each(records.trainings, add);
  std::ranges::for_each(records.networks, add);
  std::vector<std::pair<std::string, std::string>> facts;
  const auto failed = std::ranges::count_if(records.runs, [](const Run& run) { return !run.is_measured(); });
  if (!records.runs.empty())
    facts.emplace_back("Runs",
                       fmt::format("{}{}", records.runs.size(), failed > 0 ? fmt::format(", {} failed", failed) : ""));
  facts.emplace_back("Machine", joined(machines));
  facts.emplace_back("GPU", joined(gpus));
  facts.emplace_back("System", joined(systems));
  facts.emplace_back("Build", joined(builds));
  facts.emplace_back("Compiler", joined(compilers));
  if (!times.empty()) {
    const std::string first = minute_text(*times.begin()), last = minute_text(*times.rbegin());
    facts.emplace_back("Measured", first == last ? first + " UTC" : fmt::format("{} to {} UTC", first, last));
  }
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

std::vector<std::string> files_of(const RecordSet& records) {
  std::vector<std::string> files;
  const auto add = [&](const auto& record) { files.push_back(record.file); };
  std::ranges::for_each(records.runs, add);
  std::ranges::for_each(records.trainings, add);
  std::ranges::for_each(records.networks, add);
  return files;
}

std::vector<std::string> warnings_of(const RecordSet& records, const std::vector<Study>& studies) {
  std::vector<std::string> warnings = records.warnings;
  for (const Study& study : studies) append(warnings, study.warnings);
  std::vector<std::pair<std::string, std::size_t>> counts;  // machine warnings, with the number of runs
  for (const Run& run : records.runs) {
    for (const std::string& warning : run.machine.warnings) {
      // The load is a different number in every run.
      std::string kind = warning.substr(0, warning.find_first_of("0123456789"));
      if (kind.empty()) kind = warning;
      const auto found =
          std::ranges::find_if(counts, [&](const auto& entry) { return entry.first.rfind(kind, 0) == 0; });
      if (found == counts.end()) {
        counts.emplace_back(warning, 1);
      } else {
        ++found->second;
      }
    }
  }
  for (const auto& [warning, count] : counts)
    warnings.push_back(
        fmt::format("{} of {} runs warned about their machine: {}", count, records.runs.size(), warning));
  return warnings;
}

}  // namespace trireme::report
