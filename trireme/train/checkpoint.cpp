#include "trireme/train/checkpoint.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/parse.hpp"

namespace trireme::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "trireme checkpoint 1";
constexpr std::string_view kPrefix = "checkpoint-", kSuffix = ".safetensors";

std::string state_name(const Node& variable, int index) { return fmt::format("{}/optimizer/{}", variable.name, index); }

// Independent of tensor order: each hash starts with the name.
std::uint64_t checksum_of(const std::string& name, const HostTensor& value) {
  return hash_bytes(value.bytes(), hash_bytes(std::as_bytes(std::span(name))));
}

std::string to_text(const std::vector<data::PositionRange>& ranges) {
  std::vector<std::string> texts;
  for (const data::PositionRange& range : ranges) texts.push_back(fmt::format("{}-{}", range.begin, range.end));
  return fmt::format("{}", fmt::join(texts, ","));
}

std::vector<data::PositionRange> parse_ranges(const std::string& text) {
  std::vector<data::PositionRange> ranges;
  std::int64_t last = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto begin = parse_number<std::int64_t>(part.substr(0, dash));
    const auto end = parse_number<std::int64_t>(part.substr(std::min(dash + 1, part.size())));
    if (!begin || !end || *begin < last || *end <= *begin) {
      bad_input("a checkpoint is damaged: '{}' are not positions that are left over", text);
    }
    ranges.push_back({*begin, last = *end});
  }
  return ranges;
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

// Of a file that is one, and undamaged.
TrainingState state_of(const std::string& path, const SafetensorsFile& file) {
  MetadataReader metadata(fmt::format("'{}'", path), file.metadata());
  if (const std::string format = metadata.text("format"); format != kFormat) {
    bad_input("'{}' has format '{}'; this version reads '{}'", path, format, kFormat);
  }
  std::uint64_t checksum = 0;
  for (const std::string& name : file.names()) checksum += checksum_of(name, file.read(name));
  if (metadata.text("checksum") != hex(checksum)) {
    bad_input("'{}' is damaged: its checksum does not match its tensors; use an older one", path);
  }
  return read_state(metadata);
}

std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::size_t digits = name.size() - kPrefix.size() - kSuffix.size();
  const auto step = parse_number<std::int64_t>(std::string_view(name).substr(kPrefix.size(), digits));
  return step.value_or(-1) >= 0 ? step : std::nullopt;
}

bool is_left_over(const fs::path& path) {
  const std::string name = path.filename();
  return name.starts_with(kPrefix) && name.ends_with(".tmp");
}

}  // namespace

Metadata to_metadata(const TrainingState& state) {
  Metadata metadata = state.others;
  metadata["model"] = state.model;
  metadata["classes"] = std::to_string(state.classes);
  metadata["seed"] = std::to_string(state.seed);
  metadata["step"] = std::to_string(state.step);
  metadata["samples"] = std::to_string(state.samples);
  if (!state.leftover.empty()) metadata["leftover"] = to_text(state.leftover);
  metadata["global_batch_size"] = std::to_string(state.global_batch_size);
  metadata["optimizer"] = state.optimizer;
  if (state.train_seconds) metadata["train_seconds"] = fmt::format("{}", *state.train_seconds);
  metadata["epoch_steps"] = std::to_string(state.epoch.steps);
  metadata["epoch_loss"] = fmt::format("{}", state.epoch.loss);
  metadata["epoch_seconds"] = fmt::format("{}", state.epoch.seconds);
  return metadata;
}

TrainingState read_state(MetadataReader& metadata) {
  TrainingState state{.model = metadata.text("model"),
                      .classes = metadata.number<std::int64_t>("classes"),
                      .seed = metadata.number<std::uint64_t>("seed"),
                      .step = metadata.number<std::int64_t>("step"),
                      .samples = metadata.number<std::int64_t>("samples"),
                      .leftover = parse_ranges(metadata.text_if_any("leftover")),
                      .global_batch_size = metadata.number<std::int64_t>("global_batch_size"),
                      .optimizer = metadata.text("optimizer"),
                      .train_seconds = metadata.number_if_any<double>("train_seconds"),
                      .epoch = {.steps = metadata.number_if_any<std::int64_t>("epoch_steps").value_or(0),
                                .loss = metadata.number_if_any<double>("epoch_loss").value_or(0),
                                .seconds = metadata.number_if_any<double>("epoch_seconds").value_or(0)}};
  state.others = metadata.rest();
  return state;
}

Checkpoint take_checkpoint(const VariableStore& store, TrainingState state) {
  Checkpoint checkpoint{.state = std::move(state), .tensors = {}};
  for (const NodeId id : store.all()) {
    const Node& variable = store.node(id);
    checkpoint.tensors.push_back({variable.name, store.get(id)});
    for (int index = 0; index < store.state_count(id); ++index) {
      checkpoint.tensors.push_back({state_name(variable, index), store.get_state(id, index)});
    }
  }
  return checkpoint;
}

void write_checkpoint(const Checkpoint& checkpoint, const std::string& path) {
  std::uint64_t checksum = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) checksum += checksum_of(tensor.name, tensor.value);
  Metadata metadata = to_metadata(checkpoint.state);
  metadata["format"] = kFormat;
  metadata["checksum"] = hex(checksum);
  write_safetensors(path, checkpoint.tensors, metadata);
}

CheckpointFile::CheckpointFile(const std::string& path)
    : path_(path), tensors_(path), state_(state_of(path, tensors_)) {}

HostTensor CheckpointFile::read(const std::string& name, const Node& variable) const {
  if (!tensors_.contains(name)) {
    bad_input("'{}' (of {}) has no '{}', which this network needs; is it from another network?", path_, state_.model,
              name);
  }
  if (const TensorType& type = tensors_.type(name); type != variable.outputs[0]) {
    bad_input(
        "'{}' (of {}): '{}' has shape {}, but {} in this network; is it from another network, or for other classes?",
        path_, state_.model, name, to_string(type.shape), to_string(variable.outputs[0].shape));
  }
  return tensors_.read(name);
}

void CheckpointFile::restore(VariableStore& store) const {
  for (const NodeId id : store.all()) {
    const Node& variable = store.node(id);
    store.set(id, read(variable.name, variable));
    for (int index = 0; index < store.state_count(id); ++index) {
      store.set_state(id, index, read(state_name(variable, index), variable));
    }
  }
  store.step = static_cast<std::uint64_t>(state_.step);
}

void CheckpointFile::restore_values(VariableStore& store, bool averages) const {
  for (const NodeId id : store.all()) {
    const Node& variable = store.node(id);
    const std::string average = average_name(variable);
    store.set(id, read(averages && tensors_.contains(average) ? average : variable.name, variable));
  }
}

std::string average_name(const Node& variable) { return variable.name + "/average"; }

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return fmt::format("{}/{}{}{}", folder, kPrefix, step, kSuffix);
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::map<std::int64_t, std::string> by_step;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (const auto step = step_of(entry.path())) by_step[*step] = entry.path();
  }
  std::vector<std::string> paths;
  for (const auto& [step, path] : by_step) paths.push_back(path);
  return paths;
}

std::unique_ptr<CheckpointFile> open_latest_checkpoint(const std::string& folder) {
  const auto paths = list_checkpoints(folder);
  return paths.empty() ? nullptr : std::make_unique<CheckpointFile>(paths.back());
}

std::unique_ptr<CheckpointFile> open_checkpoint(const std::string& path) {
  if (!fs::is_directory(path)) return std::make_unique<CheckpointFile>(path);
  auto latest = open_latest_checkpoint(path);
  if (!latest) bad_input("--checkpoint {}: there are no checkpoints in this folder", path);
  return latest;
}

CheckpointWriter::CheckpointWriter(std::string folder, int keep, Write write)
    : folder_(std::move(folder)), keep_(keep), write_(std::move(write)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  check_can_make(checkpoint_path(folder_, 0), "", "give a writable folder for checkpoints");
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (is_left_over(entry.path())) fs::remove(entry.path(), error);
  }
  thread_ = std::thread([this] { work(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::save(std::shared_ptr<const Checkpoint> checkpoint) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(checkpoint);
  changed_.notify_all();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !waiting_ && !writing_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::string CheckpointWriter::last_path() const {
  const std::lock_guard lock(mutex_);
  return last_path_;
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return waiting_ || stopping_; });
    if (!waiting_) return;
    const std::shared_ptr<const Checkpoint> checkpoint = std::exchange(waiting_, nullptr);
    writing_ = true;
    lock.unlock();
    const std::string path = checkpoint_path(folder_, checkpoint->state.step);
    std::exception_ptr error;
    try {
      write_(*checkpoint, path);
      remove_old();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    writing_ = false;
    if (!error) last_path_ = path;
    if (!error_) error_ = error;
    changed_.notify_all();
  }
}

void CheckpointWriter::remove_old() const {
  std::vector<std::string> paths = list_checkpoints(folder_);
  std::error_code ignored;
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < paths.size(); ++i) fs::remove(paths[i], ignored);
}

}  // namespace trireme::train
