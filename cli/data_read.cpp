// `trireme data inspect` and `verify`: read a data set to say what is in it, or whether it is intact.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/checks.hpp"
#include "cli/data_parts.hpp"
#include "cli/interrupt.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/survey.hpp"
#include "trireme/data/whole_image.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::cli {
namespace {

struct ReadOptions {
  std::string path, name = "auto";
  std::int64_t samples = 10000;
  int first = 3;
  int threads = 0;
  bool json = false;
};

// One split and its survey.
struct SplitReport {
  data::Split split = data::Split::train;
  std::shared_ptr<const data::Dataset> dataset;
  data::Survey survey;
  std::vector<std::string> broken_files;

  std::string class_name(std::int32_t label) const {
    const auto& names = dataset->info().class_names;
    if (label >= 0 && label < std::ssize(names)) return names[label];
    const auto text = survey.texts.find(label);
    return text == survey.texts.end() ? "" : text->second;
  }
  std::int64_t problems() const { return std::ssize(survey.problems) + std::ssize(broken_files); }
  std::vector<std::string> problem_texts() const {
    std::vector<std::string> texts = broken_files;
    for (const auto& [index, problem] : survey.problems) texts.push_back(problem);
    return texts;
  }
};

std::string samples_text(std::int64_t count) { return counted(count, "sample", "samples"); }

SplitReport report_of(const ReadOptions& options, const std::string& format, data::Split split,
                      const data::SurveyOptions& survey_options) {
  SplitReport report;
  report.split = split;
  report.dataset = data::open_dataset(
      options.path, {.name = format, .split = split, .on_broken_file = [&](const std::string& problem) {
                       report.broken_files.push_back(problem);
                     }});
  if (report.dataset->size() == 0 && report.broken_files.empty()) {
    bad_input("'{}' has no samples in its {} data: the files are empty", options.path, data::to_string(split));
  }
  report.survey = data::survey(*report.dataset, survey_options);
  return report;
}

std::string extent(int width, int height) { return fmt::format("{}x{}", width, height); }

// "500x375 (512), 375x500 (88) and 17 more"
std::string dimensions_text(const data::Survey& survey) {
  using Entry = std::pair<std::pair<int, int>, std::int64_t>;
  std::vector<Entry> entries(survey.dimensions.begin(), survey.dimensions.end());
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.second > b.second; });
  if (entries.size() == 1) return extent(entries[0].first.first, entries[0].first.second);
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, entries.size()); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", extent(entries[i].first.first, entries[i].first.second),
                        format_count(entries[i].second));
  }
  return entries.size() > kMost ? fmt::format("{} and {} more sizes", text, entries.size() - kMost) : text;
}

std::vector<std::pair<std::string, data::Sample>> first_samples(const SplitReport& report, int count) {
  std::vector<std::pair<std::string, data::Sample>> samples;
  data::WholeImages images(*report.dataset);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, report.dataset->size()); ++i) {
    if (report.survey.problems.contains(i)) continue;
    auto& [where, sample] = samples.emplace_back();
    where = report.dataset->where(i);
    report.dataset->read(i, sample);
    images.measure(i, sample);
  }
  return samples;
}

// What `inspect` checks; `verify` finds all of that and more.
constexpr const char* kInspected = " (judged by framing, labels and image headers; `verify` decodes every image)";

void print_problems(const SplitReport& report) {
  constexpr std::size_t kMost = 3;
  const std::vector<std::string> problems = report.problem_texts();
  for (std::size_t i = 0; i < std::min(kMost, problems.size()); ++i) fmt::print("    {}\n", problems[i]);
  if (problems.size() > kMost) {
    fmt::print("    and {} more; --json lists them\n", format_count(problems.size() - kMost));
  }
}

void print_split(const SplitReport& report, int first) {
  const data::Survey& survey = report.survey;
  const data::DatasetInfo& info = report.dataset->info();
  const std::int64_t size = report.dataset->size();
  fmt::print("\n{}: {}", data::to_string(report.split), samples_text(size));
  if (survey.samples < size)
    fmt::print("; the figures below are from {}, chosen at random", format_count(survey.samples));
  fmt::print("\n  images   {}", dimensions_text(survey));
  if (info.channels > 0) fmt::print(", {} channel{}", info.channels, info.channels == 1 ? "" : "s");
  fmt::print(
      "\n  bytes    {}, {} each", format_bytes(survey.bytes),
      format_bytes(static_cast<double>(survey.bytes) / static_cast<double>(std::max<std::int64_t>(1, survey.samples))));
  if (survey.boxes > 0) fmt::print("\n  boxes    {}", format_count(survey.boxes));
  fmt::print("\n  broken   {}{}\n", format_count(report.problems()), kInspected);
  print_problems(report);
  if (const std::string others = data::other_files_text(info); !others.empty()) fmt::print("  there {}\n", others);
  fmt::print("\n");

  constexpr std::size_t kMostClasses = 20;
  TextTable classes({{"label", Align::right}, {"class"}, {"samples", Align::right}});
  for (const auto& [label, count] : survey.labels) {
    if (survey.labels.size() > kMostClasses && label >= static_cast<std::int32_t>(kMostClasses)) break;
    classes.add_row({std::to_string(label), report.class_name(label), format_count(count)});
  }
  fmt::print("{}", classes.text());
  if (survey.labels.size() > kMostClasses) fmt::print("{} classes in all; --json lists them\n", survey.labels.size());

  TextTable samples({{"sample"}, {"label", Align::right}, {"size", Align::right}, {"bytes", Align::right}});
  for (const auto& [where, sample] : first_samples(report, first)) {
    samples.add_row({where, std::to_string(sample.label), extent(sample.width, sample.height),
                     format_count(std::ssize(sample.bytes))});
  }
  if (first > 0) fmt::print("\n{}", samples.text());
}

Json split_json(const SplitReport& report, int first) {
  const data::Survey& survey = report.survey;
  Json classes = Json::array();
  for (const auto& [label, count] : survey.labels) {
    classes.push_back({{"label", label}, {"name", report.class_name(label)}, {"samples", count}});
  }
  Json dimensions = Json::array();
  for (const auto& [size, count] : survey.dimensions) {
    dimensions.push_back({{"width", size.first}, {"height", size.second}, {"samples", count}});
  }
  Json others = Json::array();
  for (const auto& [ending, files] : report.dataset->info().other_files) {
    others.push_back({{"ending", ending}, {"files", files.count}, {"example", files.example}});
  }
  Json samples = Json::array();
  for (const auto& [where, sample] : first_samples(report, first)) {
    samples.push_back({{"where", where},
                       {"label", sample.label},
                       {"width", sample.width},
                       {"height", sample.height},
                       {"bytes", sample.bytes.size()}});
  }
  return {{"split", data::to_string(report.split)},
          {"samples", report.dataset->size()},
          {"samples_read", survey.samples},
          {"bytes_read", survey.bytes},
          {"boxes", survey.boxes},
          {"classes", std::move(classes)},
          {"dimensions", std::move(dimensions)},
          {"broken", report.problems()},
          {"problems", report.problem_texts()},
          {"other_files", std::move(others)},
          {"first", std::move(samples)}};
}

// If every sample examined is broken.
std::string unreadable_text(const SplitReport& report, const std::string& path) {
  if (report.survey.samples > std::ssize(report.survey.problems)) return "";
  return fmt::format("nothing in the {} data of '{}' can be read: {}", data::to_string(report.split), path,
                     report.problem_texts().front());
}

int inspect(const ReadOptions& options) {
  const data::Contents contents = data::look_into(options.path, options.name);
  Json splits = Json::array();
  std::string unreadable;
  if (!options.json) fmt::print("{}: {}\n", options.path, contents.format);
  for (const data::Split split : contents.splits) {
    const SplitReport report =
        report_of(options, contents.format, split,
                  {.most_samples = options.samples, .threads = threads_or_cores(options.threads)});
    if (unreadable.empty()) unreadable = unreadable_text(report, options.path);
    if (options.json) {
      splits.push_back(split_json(report, options.first));
    } else {
      print_split(report, options.first);
    }
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"path", options.path}, {"format", contents.format}, {"splits", splits}}.dump(2));
  }
  if (!unreadable.empty()) bad_input("{}", unreadable);
  return 0;
}

int verify(const ReadOptions& options) {
  Interrupt interrupt;
  const std::stop_token stop = interrupt.listen();
  const data::Contents contents = data::look_into(options.path, options.name);
  std::int64_t problems = 0;
  Json splits = Json::array();
  for (const data::Split split : contents.splits) {
    ProgressLine progress("reading");
    const SplitReport report = report_of(options, contents.format, split,
                                         {.decode = true,
                                          .threads = threads_or_cores(options.threads),
                                          .stop = stop,
                                          .on_progress = progress.handler()});
    if (stop.stop_requested()) return kInterruptedExitCode;
    problems += report.problems();
    if (options.json) {
      splits.push_back(split_json(report, 0));
      continue;
    }
    for (const std::string& problem : report.broken_files) fmt::print("broken file: {}\n", problem);
    for (const auto& [index, problem] : report.survey.problems) fmt::print("broken sample: {}\n", problem);
    fmt::print("{}: {} read, {} broken\n", data::to_string(split), samples_text(report.survey.samples),
               format_count(report.problems()));
    if (const std::string others = data::other_files_text(report.dataset->info()); !others.empty()) {
      fmt::print("{}: there {}\n", data::to_string(split), others);
    }
  }
  if (options.json) {
    const Json whole{{"path", options.path}, {"format", contents.format}, {"broken", problems}, {"splits", splits}};
    fmt::print("{}\n", whole.dump(2));
  }
  return problems == 0 ? 0 : 1;
}

void add_common_options(CLI::App& app, ReadOptions& options) {
  app.add_option("path", options.path, "Folder of the data set, or one TFRecord file")->required();
  app.add_option("--data-name", options.name, "Format: auto, tfrecord, folder, idx or cifar10")->capture_default_str();
  add_threads_option(app, options.threads);
  app.add_flag("--json", options.json, "Machine-readable");
}

}  // namespace

Command add_data_inspect(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("inspect", "Show the format, samples, classes, image sizes and first samples");
  auto options = std::make_shared<ReadOptions>();
  add_common_options(*app, *options);
  app->add_option("--samples", options->samples, "Samples of each split to examine, chosen at random; 0: all")
      ->check(whole_number(0))
      ->capture_default_str();
  app->add_option("--first", options->first, "Number of first samples to list")
      ->check(whole_number(0, 10000))
      ->capture_default_str();
  return {app, [options] { return inspect(*options); }};
}

Command add_data_verify(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "verify", "Read and decode every sample, list broken ones, and exit with 1 if there are any");
  auto options = std::make_shared<ReadOptions>();
  add_common_options(*app, *options);
  return {app, [options] { return verify(*options); }};
}

}  // namespace trireme::cli
