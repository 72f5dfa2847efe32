// `trireme data make` and `convert`: write a data set from drawn samples or from another data set.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/checks.hpp"
#include "cli/data_parts.hpp"
#include "cli/interrupt.hpp"
#include "trireme/base/error.hpp"
#include "trireme/data/drawn.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/sample_order.hpp"
#include "trireme/data/survey.hpp"
#include "trireme/data/writer.hpp"

namespace trireme::cli {
namespace {

struct OutputOptions {
  std::string out, format;
  int shards = 0, validation_shards = 0;
  int quality = 90;
  int threads = 0;
  std::uint64_t seed = 1;
};

struct MakeOptions {
  OutputOptions output;
  std::int64_t samples = 6000, validation_samples = 1000;
  int classes = 10;
  std::string size;
};

struct ConvertOptions {
  OutputOptions output;
  std::string from, name = "auto";
  bool in_order = false;
  std::int64_t max_bad_records = 0;
};

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.add_option("--out", options.out, "Output folder; must not exist or must be empty")->required();
  app.add_option("--shards", options.shards, "TFRecord files for training data (default: one per 1,250 samples)")
      ->check(whole_number(1, 99999));
  app.add_option("--validation-shards", options.validation_shards,
                 "TFRecord files for validation data (default: one per 1,250 samples)")
      ->check(whole_number(1, 99999));
  app.add_option("--quality", options.quality, "Quality of JPEG images made from pixels, 1 to 100")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  add_threads_option(app, options.threads);
}

int shards_of(data::Split split, const OutputOptions& options) {
  return split == data::Split::train ? options.shards : options.validation_shards;
}

constexpr const char* kNotComplete = "not complete: run the same command again to continue\n";

int write(const std::vector<data::SplitSource>& sources, const OutputOptions& options, const std::string& origin,
          const std::stop_token& stop) {
  bool is_complete = false;
  {
    ProgressLine progress("writing");
    is_complete = data::write_dataset(sources, {.format = options.format,
                                                .folder = options.out,
                                                .origin = origin,
                                                .quality = options.quality,
                                                .threads = threads_or_cores(options.threads),
                                                .stop = stop,
                                                .on_progress = progress.handler()});
  }
  if (!is_complete) {
    std::fputs(kNotComplete, stderr);
    return kInterruptedExitCode;
  }
  for (const data::SplitSource& source : sources) {
    const std::int32_t classes = source.samples->info().classes;  // 0: unknown
    const std::string split(data::to_string(source.split));
    fmt::print("{}: {}{}, {}\n", options.out, counted(source.samples->size(), split + " sample", split + " samples"),
               classes == 0 ? "" : " of " + counted(classes, "class", "classes"), options.format);
  }
  return 0;
}

struct Extent {
  int width = 0, height = 0;
};

// "32" or "500x375", width first.
Extent parse_size(const std::string& text) {
  constexpr int kMost = 65500;
  Extent size;
  int used = 0;
  const bool is_pair = std::sscanf(text.c_str(), "%5dx%5d%n", &size.width, &size.height, &used) == 2;
  if (!is_pair) {
    used = 0;
    if (std::sscanf(text.c_str(), "%5d%n", &size.width, &used) == 1) size.height = size.width;
  }
  const auto possible = [](int side) { return side >= 8 && side <= kMost; };
  if (used != std::ssize(text) || !possible(size.width) || !possible(size.height)) {
    bad_input("--size {}: must be one side, or width x height such as 500x375, each from 8 to {} pixels", text, kMost);
  }
  return size;
}

int make(const MakeOptions& options) {
  const bool is_idx = options.output.format == "idx";
  const std::string size_text = !options.size.empty() ? options.size : is_idx ? "28" : "500x375";
  const Extent size = parse_size(size_text);
  std::vector<data::SplitSource> sources;
  for (const data::Split split : {data::Split::train, data::Split::validation}) {
    const data::DrawnOptions drawn{
        .split = split,
        .samples = split == data::Split::train ? options.samples : options.validation_samples,
        .classes = options.classes,
        .height = size.height,
        .width = size.width,
        .seed = options.output.seed};
    if (drawn.samples == 0) continue;
    sources.push_back(
        {split, is_idx ? data::draw_digits(drawn) : data::draw_shapes(drawn), shards_of(split, options.output)});
  }
  Interrupt interrupt;
  return write(
      sources, options.output,
      fmt::format("drawn, {} classes, {}x{}, seed {}", options.classes, size.width, size.height, options.output.seed),
      interrupt.listen());
}

// Some samples of another data set, or all of them in another order.
class View final : public data::Dataset {
 public:
  using At = std::function<std::int64_t(std::int64_t index)>;  // index in the other
  View(std::shared_ptr<const data::Dataset> dataset, std::int64_t size, At at)
      : dataset_(std::move(dataset)), size_(size), at_(std::move(at)) {}

  const data::DatasetInfo& info() const override { return dataset_->info(); }
  std::int64_t size() const override { return size_; }
  void read(std::int64_t index, data::Sample& sample) const override { dataset_->read(at_(index), sample); }
  std::string where(std::int64_t index) const override { return dataset_->where(at_(index)); }

 private:
  std::shared_ptr<const data::Dataset> dataset_;
  std::int64_t size_;
  At at_;
};

// Reports broken source records and skips them unless there are too many.
class BadRecords {
 public:
  explicit BadRecords(std::int64_t most) : most_(most) {}

  std::int64_t most() const { return most_; }
  std::int64_t count() const { return count_; }
  void add(const std::string& problem) {
    if (++count_ > most_) {
      fail(ErrorKind::failed, "{} (bad record number {}; --max-bad-records {})", problem, count_, most_);
    }
    log_line("warning: left out: " + problem);
  }

 private:
  std::int64_t most_, count_ = 0;
};

// Opens one split. Reads it first if broken records may be skipped: they must be known before writing starts.
std::shared_ptr<const data::Dataset> open_split(const ConvertOptions& options, const data::OpenOptions& open,
                                                BadRecords& bad, const std::stop_token& stop) {
  if (bad.most() == 0) return data::open_dataset(options.from, open);
  data::OpenOptions tolerant = open;
  tolerant.on_broken_file = [&bad](const std::string& problem) { bad.add(problem); };
  std::shared_ptr<const data::Dataset> samples = data::open_dataset(options.from, tolerant);
  data::Survey survey;
  {
    ProgressLine progress("reading");
    survey = data::survey(*samples, {.decode = true,
                                     .threads = threads_or_cores(options.output.threads),
                                     .stop = stop,
                                     .on_progress = progress.handler()});
  }
  if (survey.problems.empty()) return samples;
  std::vector<std::int64_t> good;
  for (std::int64_t i = 0; i < samples->size(); ++i) {
    const auto problem = survey.problems.find(i);
    if (problem == survey.problems.end()) {
      good.push_back(i);
    } else {
      bad.add(problem->second);
    }
  }
  const std::int64_t count = std::ssize(good);
  return std::make_shared<View>(std::move(samples), count, [good = std::move(good)](auto i) { return good.at(i); });
}

int convert(const ConvertOptions& options) {
  Interrupt interrupt;
  const std::stop_token stop = interrupt.listen();
  BadRecords bad(options.max_bad_records);
  const data::Contents contents = data::look_into(options.from, options.name);
  const bool is_shuffled = options.output.format == "tfrecord" && !options.in_order;
  std::vector<data::SplitSource> sources;
  for (const data::Split split : contents.splits) {
    std::shared_ptr<const data::Dataset> samples =
        open_split(options, {.name = contents.format, .split = split}, bad, stop);
    if (stop.stop_requested()) {
      std::fputs(kNotComplete, stderr);
      return kInterruptedExitCode;
    }
    if (is_shuffled && samples->size() > 0) {  // TFRecord readers take samples in file order
      const data::SampleOrder order(samples->size(), options.output.seed, true);
      samples = std::make_shared<View>(samples, samples->size(), [order](auto i) { return order.at(i); });
    }
    sources.push_back({split, std::move(samples), shards_of(split, options.output)});
  }
  const std::string order = is_shuffled ? fmt::format("shuffled by seed {}", options.output.seed) : "in order";
  const int code = write(
      sources, options.output,
      fmt::format("{} as {}, {}", std::filesystem::absolute(options.from).string(), contents.format, order), stop);
  if (code == 0 && bad.count() > 0) fmt::print("left out: {} broken\n", bad.count());
  return code;
}

}  // namespace

Command add_data_make(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("make", "Draw a learnable data set: digits (idx) or coloured shapes (folder, tfrecord)");
  auto options = std::make_shared<MakeOptions>();
  options->output.format = "idx";
  add_output_options(*app, options->output);
  app->add_option("--format", options->output.format, "idx, folder or tfrecord")->capture_default_str();
  app->add_option("--samples", options->samples, "Number of training samples")
      ->check(whole_number(1, std::int64_t{1} << 31))
      ->capture_default_str();
  app->add_option("--validation-samples", options->validation_samples, "Number of validation samples; 0: none")
      ->check(whole_number(0, std::int64_t{1} << 31))
      ->capture_default_str();
  app->add_option("--classes", options->classes, "Number of classes: 2 to 10 digits, or 2 to 1,000 kinds of shapes")
      ->capture_default_str();
  app->add_option("--size", options->size,
                  "Image size in pixels: one side, or width x height (default: 28 for idx, otherwise 500x375)");
  app->add_option("--seed", options->output.seed, "Random seed; the same seed draws the same data")
      ->capture_default_str();
  return {app, [options] { return make(*options); }};
}

Command add_data_convert(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("convert", "Write a data set in another format; continues if interrupted");
  auto options = std::make_shared<ConvertOptions>();
  app->add_option("from", options->from, "Folder of the data set, or one TFRecord file")->required();
  add_output_options(*app, options->output);
  app->add_option("--format", options->output.format, "tfrecord, folder or idx")->required();
  app->add_option("--data-name", options->name, "Input format: auto, tfrecord, folder, idx or cifar10")
      ->capture_default_str();
  app->add_option("--max-bad-records", options->max_bad_records,
                  "Number of broken samples to report and leave out; one more is an error")
      ->check(whole_number(0))
      ->capture_default_str();
  app->add_flag("--in-order", options->in_order,
                "Write TFRecords in the order of the source instead of shuffling them");
  app->add_option("--seed", options->output.seed, "Seed for shuffling TFRecords")->capture_default_str();
  return {app, [options] { return convert(*options); }};
}

}  // namespace trireme::cli
