#include "trireme/lab/data_input.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/base/log_line.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/threads.hpp"

namespace trireme::lab {
namespace {

// Named on stderr, as what goes wrong with single records and does not end the run.
void say(const std::string& problem) { log_line("passed over: " + problem); }

std::string_view crop_text(data::Crop crop) {
  switch (crop) {
    case data::Crop::random:
      return "random crop";
    case data::Crop::padded:
      return "random crop after padding";
    case data::Crop::centre:
      return "centre crop";
    case data::Crop::none:
      break;
  }
  return "no crop";
}

}  // namespace

DataInput::DataInput(const BenchmarkConfig& config, comm::Communicator& workers) : config_(config.data) {
  const ModelInfo& model = find_model(config.model);
  data::OpenOptions open{.name = config_.name};
  if (config_.max_bad_records > 0) open.on_broken_file = say;
  dataset_ = data::open_dataset(config_.dir, open);
  if (dataset_->size() == 0) bad_input("--data-dir {}: the data set has no images", config_.dir);
  check_same(workers);
  const std::int64_t classes = config.num_classes > 0 ? config.num_classes : model.classes;
  check_classes(classes);
  options_.batch_size = config.batch_size;
  options_.rank = workers.rank();
  options_.ranks = workers.size();
  options_.seed = config.seed;
  options_.classes = static_cast<std::int32_t>(classes);
  options_.preprocessing = data::preprocessing_for(dataset_->info(), static_cast<int>(model.image_size),
                                                   static_cast<int>(model.channels), !config.forward_only);
  options_.preprocessing.distort_colour = config_.distortions;
  options_.threads = config_.threads;
  options_.prefetch = config_.prefetch;
  options_.cache_bytes = config_.cache_bytes;
  options_.max_bad_samples = config_.max_bad_records;
  options_.on_bad_sample = say;
}

void DataInput::check_classes(std::int64_t classes) const {
  if (dataset_->info().classes > classes) {
    bad_input("--data-dir {}: its images have {} classes and the network {}; --num-classes {} gives it as many",
              config_.dir, dataset_->info().classes, classes, dataset_->info().classes);
  }
}

// Workers take their shares of one sequence: it must be the same for all.
void DataInput::check_same(comm::Communicator& workers) const {
  if (workers.size() == 1) return;
  workers.set_context("comparing data sets");
  const std::vector<std::int64_t> sizes = comm::all_gather_value(workers, dataset_->size());
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
    if (sizes[rank] == sizes[0]) continue;
    bad_input("all workers need the same data: there are {} images in {} on rank 0 ({}) and {} on rank {} ({})",
              sizes[0], config_.dir, workers.members()[0].host, sizes[rank], rank, workers.members()[rank].host);
  }
}

void DataInput::start(const std::vector<int>& processors, std::int64_t first, perf::Recorder* recorder) {
  options_.first = first;
  options_.recorder = recorder;
  if (!processors.empty()) {
    options_.start_thread = [processors] { std::ignore = perf::limit_thread(processors); };
  }
  pipeline_ = std::make_unique<data::Pipeline>(dataset_, options_);
}

std::int64_t DataInput::count_bad_records(comm::Communicator& workers) const {
  const nlohmann::json own = pipeline_ ? pipeline_->bad_samples() : std::vector<std::int64_t>();
  std::set<std::int64_t> all;
  for (const std::string& text : comm::all_gather_text(workers, own.dump())) {
    const auto each = nlohmann::json::parse(text).get<std::vector<std::int64_t>>();
    all.insert(each.begin(), each.end());
  }
  return static_cast<std::int64_t>(all.size());
}

std::string DataInput::describe() const {
  const data::DatasetInfo& info = dataset_->info();
  std::string text =
      fmt::format("{} ({}): {} images", info.format, config_.dir, format_count(static_cast<double>(dataset_->size())));
  if (info.height > 0) text += fmt::format(" of {}x{}x{}", info.channels, info.height, info.width);
  if (info.classes > 0) text += fmt::format(", {} classes", info.classes);
  return text;
}

std::string DataInput::describe_preprocessing() const {
  const data::Preprocessing& made = options_.preprocessing;
  std::string text = fmt::format(
      "{}{}{}, to {}x{}x{}; {} thread{} per worker, {} batch{} ahead", crop_text(made.crop), made.flip ? ", flip" : "",
      made.distort_colour ? ", distorted colours" : "", made.channels, made.size, made.size, options_.threads,
      options_.threads == 1 ? "" : "s", options_.prefetch, options_.prefetch == 1 ? "" : "es");
  if (options_.cache_bytes > 0)
    text += fmt::format(", up to {} kept in memory", format_bytes(static_cast<double>(options_.cache_bytes)));
  return text;
}

}  // namespace trireme::lab
