// Findings without a comparison, and guidelines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "trireme/base/json.hpp"
#include "trireme/perf/comparison.hpp"
#include "trireme/perf/rank_test.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/findings.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr double kAllCompute = 0.99;   // of a step: the rest is not worth a sentence
constexpr double kCloseEnough = 0.95;  // of the best speed, if there is a reason to take less

std::string work_text(const Cell& cell) {
  const Run& run = cell.example();
  std::string text = run.option_text("model");
  if (text.empty()) text = "this network";
  if (run.option_text("forward-only") == "true") text += ", forward only";
  if (const std::string precision = run.option_text("precision"); !precision.empty() && precision != "fp32")
    text += ", " + precision;
  if (const std::string device = run.option_text("device"); !device.empty() && device != "cpu") text += ", " + device;
  if (exchange_of(run) == "none") text += ", workers exchanging nothing";
  if (exchange_of(run) == "asynchronous") text += ", asynchronous";
  if (run.framework != "trireme") text += " under " + run.framework;
  return text;
}

// Time breakdown of the fastest configuration.
void add_time(const Study& study, const std::vector<Figure>& figures, std::vector<Finding>& findings) {
  for (const auto& cells : same_work(study)) {
    const Cell& best = fastest(cells);
    const auto time = mean_time(best);
    if (!time || time->compute >= kAllCompute * time->total()) continue;
    claim::StepTime claim;
    for (const TimePart& part : time_parts()) {
      const double percent = 100 * (*time).*part.seconds / time->total();
      if (percent >= 0.5) claim.percent.emplace_back(part.name, percent);
    }
    findings.push_back({.claim = std::move(claim),
                        .subjects = {work_text(best), best.label},
                        .figure = figure_ending(figures, "-time")});
  }
}

// The cost of input, if measured. It can only cost, so the test is one-sided, over all runs together. The cell with the
// largest cost is named, without a claim of its own.
Finding input_finding(const std::vector<const Cell*>& cells, const std::string& figure) {
  const Cell* most = cells.front();
  std::vector<double> runs;
  for (const Cell* cell : cells) {
    if (perf::median(io_overheads(*cell)) > perf::median(io_overheads(*most))) most = cell;
    const std::vector<double> more = run_io_overheads(*cell);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  const double percent = perf::median(io_overheads(*most)), p = perf::sign_test(runs);
  const double smallest_p = std::pow(0.5, static_cast<double>(runs.size()));
  const bool is_shown = p < perf::kSignificance;
  perf::Comparison comparison{.ratio = 1 - percent / 100, .p = p};
  comparison.verdict = is_shown                           ? perf::Verdict::smaller
                       : smallest_p < perf::kSignificance ? perf::Verdict::no_difference_shown
                                                          : perf::Verdict::too_few_runs;
  Finding finding = tested(claim::Input{.configurations = cells.size(), .runs = runs.size(), .percent = percent},
                           {most->label}, comparison, figure);
  if (is_shown) finding.kind = Finding::Kind::shown;  // nothing got worse
  return finding;
}

void add_input(const Study& study, const std::vector<Figure>& figures, std::vector<Finding>& findings) {
  for (std::vector<const Cell*> cells : same_work(study)) {
    std::erase_if(cells, [](const Cell* cell) { return io_overheads(*cell).empty(); });
    if (!cells.empty()) findings.push_back(input_finding(cells, figure_ending(figures, "-io-overhead")));
  }
}

void add_failures(const Study& study, std::vector<Finding>& findings) {
  if (study.failed.empty()) return;
  std::size_t all = study.failed.size();
  for (const Cell& cell : study.cells) all += cell.runs.size();
  const Run& first = study.failed.front();
  findings.push_back(
      {.kind = Finding::Kind::worse,
       .claim = claim::Failures{.failed = study.failed.size(), .runs = all},
       .subjects = {study.title, short_error(first), std::filesystem::path(first.file).filename().string()}});
}

std::string names_of(const std::vector<const Cell*>& cells) {
  std::string text;
  for (std::size_t i = 0; i < std::min(cells.size(), kMostNamed); ++i) text += (i > 0 ? "; " : "") + cells[i]->label;
  if (cells.size() > kMostNamed) text += fmt::format("; and {} more", cells.size() - kMostNamed);
  return text;
}

// The smallest batch per step that is nearly as fast: it needs less memory and disturbs training least.
const Cell* smaller_batch(const Cell& best, const std::vector<const Cell*>& cells) {
  const Cell* smallest = nullptr;
  for (const Cell* cell : cells) {
    if (cell->median_speed() < kCloseEnough * best.median_speed()) continue;
    if (cell->example().effective_batch() >= best.example().effective_batch()) continue;
    if (smallest == nullptr || cell->example().effective_batch() < smallest->example().effective_batch())
      smallest = cell;
  }
  return smallest;
}

}  // namespace

std::string short_error(const Run& run) {
  if (!run.error) return "interrupted";
  std::string line = run.error->substr(0, run.error->find('\n'));
  constexpr std::size_t kMost = 200;
  if (line.size() <= kMost) return line;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // do not cut a UTF-8 character
  return line.substr(0, end) + "...";
}

std::vector<Finding> fact_findings(const Study& study, const std::vector<Figure>& figures) {
  std::vector<Finding> findings;
  add_time(study, figures, findings);
  add_input(study, figures, findings);
  add_failures(study, findings);
  return findings;
}

std::vector<Guideline> guidelines_of(const std::vector<StudyFigure>& studies) {
  Study all;
  std::vector<std::string> figures;  // one per cell
  for (const StudyFigure& entry : studies) {
    for (Cell cell : entry.study->cells) {
      if (studies.size() > 1) cell.label += fmt::format(" in '{}'", entry.study->title);
      all.cells.push_back(std::move(cell));
      figures.push_back(entry.figure);
    }
  }
  const auto guideline = [&](const std::string& text, const Cell& cell) {
    return Guideline{
        .text = text, .command = cell.example().repeat_command, .figure = figures[&cell - all.cells.data()]};
  };
  std::vector<Guideline> guidelines;
  for (const auto& cells : same_work(all)) {
    if (cells.size() < 2 || cells.front()->example().framework != "trireme") continue;
    const Cell& best = fastest(cells);
    const std::vector<const Cell*> alike = not_told_apart(best, cells);
    std::string text = fmt::format("Most images per second with {}: {} ({} images/s).", work_text(best), best.label,
                                   number_text(best.median_speed()));
    if (!alike.empty()) text += fmt::format(" These runs show no difference from: {}.", names_of(alike));
    guidelines.push_back(guideline(text, best));
    if (const Cell* small = smaller_batch(best, cells)) {
      guidelines.push_back(guideline(
          fmt::format("Nearly as fast with smaller batches: {} ({} images/s, {:.0f} % of the most, at effective batch "
                      "{:g} instead of {:g}).",
                      small->label, number_text(small->median_speed()),
                      100 * small->median_speed() / best.median_speed(), small->example().effective_batch(),
                      best.example().effective_batch()),
          *small));
    }
  }
  return guidelines;
}

std::vector<Finding> training_findings(const std::vector<Training>& records, const std::vector<Figure>& figures) {
  std::vector<Finding> findings;
  for (const Training& record : records) {
    if (record.epochs.empty() || !record.epochs.back().epoch || !record.epochs.back().loss) continue;
    const record::Epoch& last = record.epochs.back();
    claim::Training claim{.loss = *last.loss,
                          .epochs = *last.epoch,
                          .top1 = last.top1,
                          .seconds = record.train_seconds,
                          .seconds_here = record.train_seconds_here,
                          .resumed = record.resumed};
    if (!claim.seconds_here) claim.resumed.reset();
    if (!claim.resumed && !claim.seconds) {
      claim.seconds = 0;
      for (const record::Epoch& epoch : record.epochs) *claim.seconds += epoch.train_seconds;
    }
    findings.push_back({.claim = std::move(claim),
                        .subjects = {std::filesystem::path(record.file).stem().string()},
                        .figure = figure_ending(figures, "")});
  }
  return findings;
}

std::vector<Finding> network_findings(const std::vector<Figure>& figures) {
  std::vector<Finding> findings;
  for (const Figure& figure : figures) {
    const Series* fastest_series = nullptr;
    const Point* peak = nullptr;
    for (const Series& series : figure.series) {
      for (const Point& point : series.points) {
        if (peak != nullptr && point.y <= peak->y) continue;
        peak = &point;
        fastest_series = &series;
      }
    }
    findings.push_back({.claim = claim::Bandwidth{.bytes = peak->x, .gigabytes_per_second = peak->y},
                        .subjects = {figure.title, fastest_series->name},
                        .figure = figure.id});
  }
  return findings;
}

}  // namespace trireme::report
