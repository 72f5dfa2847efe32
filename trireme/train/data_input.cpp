#include "trireme/train/data_input.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/threads.hpp"

namespace trireme::train {

void report_skipped(const std::string& problem) { log_line("skipped: " + problem); }

void check_same_data(comm::Communicator& workers, const std::string& folder, std::int64_t samples, std::uint64_t hash) {
  workers.set_context("comparing data sets");
  const std::vector<std::int64_t> sizes = comm::all_gather_value(workers, samples);
  const std::vector<std::uint64_t> hashes = comm::all_gather_value(workers, hash);
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
    const std::string &first = workers.members()[0].host, &other = workers.members()[rank].host;
    if (sizes[rank] != sizes[0]) {
      bad_input("all workers need the same data: there are {} images in {} on rank 0 ({}) and {} on rank {} ({})",
                sizes[0], folder, first, sizes[rank], rank, other);
    }
    if (hashes[rank] != hashes[0]) {
      bad_input("all workers need the same data: the images in {} on rank 0 ({}) and on rank {} ({}) differ", folder,
                first, rank, other);
    }
  }
}

DataInput::DataInput(const StepConfig& config, comm::Communicator& workers) : config_(config.data) {
  const Network& model = find_model(config.options.model);
  data::OpenOptions open{.name = config_.name};
  if (config_.max_bad_records > 0) open.on_broken_file = report_skipped;
  dataset_ = data::open_dataset(config_.dir, open);
  if (dataset_->size() == 0) bad_input("--data-dir {}: the data set has no images", config_.dir);
  images_ = data::glimpse(*dataset_);
  if (workers.size() > 1) check_same_data(workers, config_.dir, dataset_->size(), images_.hash);
  const std::int64_t there = dataset_->info().classes;
  classes_ = config.num_classes > 0 ? config.num_classes : there > 0 ? std::max<std::int64_t>(there, 2) : model.classes;
  options_.rank = workers.rank();
  options_.ranks = workers.size();
  options_.seed = config.seed();
  options_.classes = static_cast<std::int32_t>(classes_);
  const auto preprocessing = [&](bool training) {
    return data::preprocessing_for(images_, static_cast<int>(model.image_size), static_cast<int>(model.channels),
                                   training, config_.preprocessing);
  };
  options_.preprocessing = preprocessing(!config.options.forward_only);
  config_.preprocessing = data::chosen_options(preprocessing(true), preprocessing(false));
  options_.threads = config_.threads;
  options_.prefetch = config_.prefetch;
  options_.cache_bytes = config_.cache_bytes;
  options_.max_bad_samples = config_.max_bad_records;
  options_.on_bad_sample = report_skipped;
}

void DataInput::check_suits(const StepConfig& config, bool goes_on) const {
  if (const std::int64_t there = dataset_->info().classes; there > classes_) {
    bad_input("--data-dir {}: its images have {} classes but the network has {}; use --num-classes {}", config_.dir,
              there, classes_, there);
  }
  const std::int64_t batch = config.global_batch_size(), workers = config.distribution.workers;
  if (goes_on || batch <= dataset_->size()) return;
  const std::int64_t most = dataset_->size() / workers;
  bad_input("--batch-size {}: a step of {} worker{} takes {} images, and {} has {}; {}", config.batch_size, workers,
            workers == 1 ? "" : "s", batch, config_.dir, dataset_->size(),
            most > 0 ? fmt::format("--batch-size {} at most", most) : "use fewer workers");
}

void DataInput::start(const StepConfig& config, const Start& start, const SampleLedger& ledger) {
  options_.batch_size = config.images_per_run();
  if (const PipelineConfig& pipeline = config.distribution.pipeline; pipeline.is_used()) {
    const PipelineShape::Place place = pipeline.place_of(options_.rank);
    options_.rank = place.replica;
    options_.ranks = place.replicas;
  }
  options_.recorder = start.recorder;
  // If records may be skipped, images tell which.
  options_.labels_only = !start.needs_images && config_.max_bad_records == 0;
  if (!start.processors.empty()) {
    options_.start_thread = [processors = start.processors] { std::ignore = perf::limit_thread(processors); };
  }
  restart(options_.rank, options_.ranks, ledger);
}

void DataInput::restart(int rank, int ranks, const SampleLedger& ledger) {
  if (pipeline_) {
    const std::vector<std::int64_t> bad = pipeline_->bad_samples();
    bad_before_.insert(bad.begin(), bad.end());
  }
  options_.rank = rank;
  options_.ranks = ranks;
  options_.first = ledger.next();
  options_.before = ledger.leftover();
  pipeline_.reset();  // its memory first
  pipeline_ = std::make_unique<data::Pipeline>(dataset_, options_);
}

std::int64_t count_different(comm::Communicator& workers, const std::vector<std::int64_t>& own) {
  std::set<std::int64_t> all;
  for (const std::string& text : comm::all_gather_text(workers, nlohmann::json(own).dump())) {
    const auto each = nlohmann::json::parse(text).get<std::vector<std::int64_t>>();
    all.insert(each.begin(), each.end());
  }
  return std::ssize(all);
}

std::int64_t DataInput::count_bad_records(comm::Communicator& workers) const {
  std::vector<std::int64_t> bad = pipeline_ ? pipeline_->bad_samples() : std::vector<std::int64_t>();
  bad.insert(bad.end(), bad_before_.begin(), bad_before_.end());
  return count_different(workers, bad);
}

std::string DataInput::describe() const {
  const data::DatasetInfo& info = dataset_->info();
  std::string text = fmt::format("{} ({}): {} images", info.format, config_.dir, format_count(dataset_->size()));
  if (info.height > 0) {
    text += fmt::format(" of {}x{}x{}", info.channels, info.height, info.width);
  } else if (images_.height > 0) {
    text += fmt::format(" of {}{}x{}x{} (judging by a few)", images_.same_size ? "" : "up to ", images_.channels,
                        images_.height, images_.width);
  }
  if (info.classes > 0) text += fmt::format(", {} classes", info.classes);
  return text;
}

std::string DataInput::describe_preprocessing() const {
  std::string text = fmt::format("{}; {} thread{} per worker, {} batch{} ahead", data::describe(options_.preprocessing),
                                 options_.threads, options_.threads == 1 ? "" : "s", options_.prefetch,
                                 options_.prefetch == 1 ? "" : "es");
  if (options_.cache_bytes > 0)
    text += fmt::format(", up to {} kept in memory", format_bytes(static_cast<double>(options_.cache_bytes)));
  return text;
}

}  // namespace trireme::train
