// `trireme report`: shows run records as a page, text, tables or drawings, and compares new records with old ones.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/report/baseline.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/renderers.hpp"
#include "trireme/report/trace_analysis.hpp"

namespace trireme::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> paths;
  std::string format, out, figure, baseline, fail_if_slower;  // no format: chosen by the extension of --out
  std::string trace;
  std::size_t operations = 15;
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return (!path.empty() && path.back() == '/') || fs::is_directory(path, ignored);
}

// Format for a file extension; empty if unknown.
std::string format_of_ending(const fs::path& path) {
  static const std::map<std::string, std::string> kEndings{
      {".html", "html"}, {".htm", "html"}, {".md", "markdown"}, {".markdown", "markdown"},
      {".csv", "csv"},   {".svg", "svg"},  {".json", "json"}};
  std::string ending = path.extension();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = kEndings.find(ending);
  return found == kEndings.end() ? "" : found->second;
}

std::string resolve_format(const ReportArguments& arguments) {
  const std::string given = arguments.format == "md" ? "markdown" : arguments.format;
  const std::string& out = arguments.out;
  if (out.empty() || out == "-" || is_folder(out)) return given.empty() ? "html" : given;
  const std::string ending = format_of_ending(out);
  if (given.empty() && ending.empty()) {
    bad_input(
        "--out {}: the extension must be .html, .md, .csv, .svg or .json; or give --format, or a folder (ending in /)",
        out);
  }
  if (!given.empty() && !ending.empty() && given != ending) {
    bad_input(
        "--format {} and --out {} contradict each other: the extension means {}; leave out --format or change the "
        "extension",
        arguments.format, out, ending);
  }
  return given.empty() ? ending : given;
}

// "5%" or "5" means 0.05.
double parse_share(const std::string& text) {
  const std::string number = !text.empty() && text.back() == '%' ? text.substr(0, text.size() - 1) : text;
  double percent = -1;
  std::size_t used = 0;
  try {
    percent = std::stod(number, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != number.size() || number.empty() || !(percent >= 0 && percent < 100))
    bad_input("--fail-if-slower {}: must be a percentage from 0 to below 100, such as 5%", text);
  return percent / 100;
}

std::string make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) bad_input("--out {}: cannot create this folder: {}", path, error.message());
  return path;
}

const report::Figure& chosen_figure(const report::Document& document, const ReportArguments& arguments) {
  const auto figures = document.figures();
  if (arguments.figure.empty() && figures.size() == 1) return *figures.front();
  if (const report::Figure* figure = document.figure(arguments.figure)) return *figure;
  std::string names;
  for (const report::Figure* figure : figures) names += (names.empty() ? "" : ", ") + figure->id;
  if (arguments.figure.empty())
    bad_input("there are {} figures: give a folder as --out, or --figure with one of {}", figures.size(), names);
  bad_input("--figure {}: no figure has this name; the figures are {}", arguments.figure, names);
}

// Next to the records if they are in one folder, else the current folder.
std::string default_out(const ReportArguments& arguments) {
  const fs::path folder = arguments.paths.size() == 1 && is_folder(arguments.paths[0]) ? arguments.paths[0] : ".";
  if (arguments.format == "html") return (folder / "report.html").lexically_normal();
  if (arguments.format == "svg" && arguments.figure.empty()) return (folder / "figures/").lexically_normal();
  return "-";
}

void write_folder(const report::Document& document, const std::string& format, const std::string& folder) {
  const fs::path base = make_folder(folder);
  if (format == "csv") write_text(report::to_csv(document.runs), base / "runs.csv");
  if (format == "markdown") write_text(report::to_markdown(document, true), base / "report.md");
  for (const report::Figure* figure : document.figures()) {
    if (format == "csv") write_text(report::to_csv(figure->table), base / (figure->id + ".csv"));
    if (format != "csv") write_text(report::to_svg(*figure), base / (figure->id + ".svg"));
  }
}

void write_document(const report::Document& document, const ReportArguments& arguments, const std::string& out) {
  if (arguments.format == "html") {
    write_text(report::to_html(document), is_folder(out) ? fs::path(make_folder(out)) / "report.html" : fs::path(out));
  } else if (arguments.format == "json") {
    write_json(report::to_json(document), is_folder(out) ? fs::path(make_folder(out)) / "report.json" : fs::path(out));
  } else if (is_folder(out)) {
    write_folder(document, arguments.format, out);
  } else if (arguments.format == "markdown") {
    write_text(report::to_markdown(document, false), out);
  } else if (arguments.format == "svg") {
    write_text(report::to_svg(chosen_figure(document, arguments)), out);
  } else {
    write_text(report::to_csv(arguments.figure.empty() ? document.runs : chosen_figure(document, arguments).table),
               out);
  }
}

void say(const report::Document& document, const std::string& out) {
  for (const std::string& warning : document.warnings) log_line("warning: " + warning);
  if (out == "-") return;
  for (const report::Finding& finding : document.findings) fmt::print("- {}\n", report::text_of(finding));
  fmt::print("{}{}\n", document.findings.empty() ? "" : "\n", out);
}

int judge(const report::BaselineComparison& comparison, double share) {
  if (report::is_blind_to_cells(comparison)) {
    log_line(fmt::format(
        "warning: --fail-if-slower cannot tell {} from so few runs; {} on each side would be enough",
        report::is_blind(comparison) ? "anything" : "which configuration is slower, only whether all together are,",
        perf::runs_needed(comparison.changes.size())));
  }
  for (const std::string& what : comparison.broken) log_line("broken: " + what);
  const std::vector<std::string> slower = report::regressions(comparison, share);
  for (const std::string& what : slower) log_line(fmt::format("slower by more than {:g} %: {}", 100 * share, what));
  return slower.empty() && comparison.broken.empty() ? 0 : exit_code(ErrorKind::failed);
}

int run_trace(const ReportArguments& arguments) {
  fmt::print("{}", to_text(report::analyze(report::read_trace(arguments.trace)), arguments.operations));
  return 0;
}

int run(ReportArguments arguments) {
  if (!arguments.trace.empty()) return run_trace(arguments);
  if (arguments.paths.empty()) bad_input("report needs records (folders or files), or --trace with a trace file");
  if (!arguments.fail_if_slower.empty() && arguments.baseline.empty())
    bad_input("--fail-if-slower needs --baseline to compare with");
  std::optional<double> share;
  if (!arguments.fail_if_slower.empty()) share = parse_share(arguments.fail_if_slower);
  arguments.format = resolve_format(arguments);
  const std::string out = arguments.out.empty() ? default_out(arguments) : arguments.out;
  const report::RecordSet records = report::load_records(arguments.paths);
  std::optional<report::BaselineComparison> comparison;
  if (!arguments.baseline.empty())
    comparison = report::compare_with_baseline(report::load_records({arguments.baseline}), records, share.has_value());
  const report::Document document =
      comparison ? report::make_baseline_document(*comparison, records) : report::make_document(records);
  write_document(document, arguments, out);
  say(document, out);
  return share ? judge(*comparison, *share) : 0;
}

}  // namespace

Command add_report(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "report", "Report on records: findings, guidelines and figures as one page, or as text, tables or drawings");
  auto arguments = std::make_shared<ReportArguments>();
  app->add_option("records", arguments->paths, "Folders of records (as written by sweep) or record files");
  app->add_option(
         "--format", arguments->format,
         "html: one self-contained page; markdown (or md); csv: one row per run; svg: one drawing per figure;\n"
         "json: findings and guidelines for programs\n"
         "(default: by the extension of --out, otherwise html)")
      ->check(one_of({"html", "markdown", "md", "csv", "svg", "json"}));
  app->add_option("--out", arguments->out,
                  "File to write, whose extension (.html, .md, .csv, .svg, .json) selects the format; - for stdout; or "
                  "a folder for\n"
                  "one file per figure (default: report.html or figures/ beside the records; others: stdout)");
  app->add_option("--figure", arguments->figure, "svg, csv: write only this figure");
  app->add_option("--baseline", arguments->baseline,
                  "Compare with the records in this folder by a statistical test: faster or slower");
  app->add_option("--fail-if-slower", arguments->fail_if_slower,
                  "With --baseline: exit with 1 if the test shows a loss of more than this percentage, such as 5%, or\n"
                  "if something measured before fails or is missing");
  CLI::Option* trace =
      app->add_option("--trace", arguments->trace,
                      "A file from bench or train --trace instead of records: shows where the time of steps goes");
  for (const char* of_records : {"records", "--format", "--out", "--figure", "--baseline", "--fail-if-slower"}) {
    trace->excludes(of_records);
  }
  app->add_option("--operations", arguments->operations,
                  "With --trace: number of operations to list, the longest first")
      ->capture_default_str()
      ->needs(trace);
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace trireme::cli
