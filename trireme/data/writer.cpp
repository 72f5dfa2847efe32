#include "trireme/data/writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/parallel.hpp"
#include "trireme/data/split_writer.hpp"
#include "trireme/features.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kSamplesPerShard = 1250;
constexpr const char* kPlanFile = ".plan.json";

int shards_of(const SplitSource& source) {
  const auto usual =
      std::clamp<std::int64_t>((source.samples->size() + kSamplesPerShard - 1) / kSamplesPerShard, 1, 1024);
  return source.shards > 0 ? source.shards : static_cast<int>(usual);
}

// Everything that determines the output.
std::string plan_text(const std::vector<SplitSource>& sources, const WriteOptions& options) {
  nlohmann::json plan{{"origin", options.origin}, {"format", options.format}, {"quality", options.quality}};
  for (const SplitSource& source : sources) {
    plan[std::string(to_string(source.split))] = {{"samples", source.samples->size()}, {"shards", shards_of(source)}};
  }
  return plan.dump() + "\n";
}

// The folder being written, until it gets its final name.
class UnfinishedFolder {
 public:
  UnfinishedFolder(const std::string& final_path, const std::string& plan) {
    final_ = std::filesystem::absolute(final_path).lexically_normal();
    if (!final_.has_filename()) final_ = final_.parent_path();  // for "folder/"
    if (std::filesystem::exists(final_) && !is_empty_folder(final_)) {
      bad_input("'{}' exists and is not empty; give a folder that does not exist", final_path);
    }
    path_ = final_.string() + ".unfinished";
    if (std::filesystem::exists(path_)) {
      check_same(plan);
    } else {
      make_folder(path_);
      write_plan(plan);
    }
    lock_.reset(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_.is_open() || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      bad_input("another process is writing to '{}'", path_.string());
    }
    remove_half_files();
  }

  std::string path() const { return path_; }
  void discard() { std::filesystem::remove_all(path_); }

  void finish() {
    if (syncfs(lock_.get()) != 0 || std::rename(path_.c_str(), final_.c_str()) != 0) {
      fail(ErrorKind::failed, "cannot rename '{}' to '{}': {}", path_.string(), final_.string(), std::strerror(errno));
    }
    std::filesystem::remove(final_ / kPlanFile);
  }

 private:
  static bool is_empty_folder(const std::filesystem::path& path) {
    return std::filesystem::is_directory(path) && std::filesystem::is_empty(path);
  }

  // A folder without a plan would block the next attempt.
  void write_plan(const std::string& plan) const {
    try {
      NewFile file(path_ / kPlanFile);
      file.write(plan);
      file.commit();
    } catch (const Error&) {
      std::error_code ignored;
      std::filesystem::remove(path_, ignored);
      throw;
    }
  }

  void check_same(const std::string& plan) const {
    const std::filesystem::path file = path_ / kPlanFile;
    if (!std::filesystem::exists(file)) {
      bad_input("'{}' is in the way, and was not left by an interrupted run: remove it", path_.string());
    }
    const std::vector<std::byte> before = read_file(file, 1 << 20);
    if (!std::ranges::equal(before, std::as_bytes(std::span(plan)))) {
      bad_input("'{}' was left by an interrupted run with other options or data: repeat that run, or remove the folder",
                path_.string());
    }
  }

  // Files a killed process had not committed.
  void remove_half_files() const {
    std::vector<std::filesystem::path> halves;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.path().extension() == ".tmp") halves.push_back(entry.path());
    }
    for (const std::filesystem::path& half : halves) std::filesystem::remove(half);
  }

  std::filesystem::path final_, path_;
  UniqueFd lock_;  // held while writing
};

struct Classes {
  std::vector<std::string> names;
  std::int32_t count = 0;
};

// Class names from the samples themselves: reads all of them.
Classes read_classes(const std::vector<SplitSource>& sources, int threads) {
  constexpr std::int64_t kPart = 256;
  std::mutex mutex;
  std::int32_t largest = -1;
  ClassTexts texts;
  for (const SplitSource& source : sources) {
    const Dataset& samples = *source.samples;
    for_each_part((samples.size() + kPart - 1) / kPart, threads, {}, [&](std::int64_t part) {
      Sample sample;
      for (std::int64_t i = part * kPart; i < std::min((part + 1) * kPart, samples.size()); ++i) {
        samples.read(i, sample);
        const std::lock_guard lock(mutex);
        largest = std::max(largest, sample.label);
        add_text(texts, sample.label, sample.class_text);
      }
    });
  }
  return {.names = names_from_texts(texts, largest + 1), .count = largest + 1};
}

bool have_texts(const std::vector<SplitSource>& sources) {
  return std::any_of(sources.begin(), sources.end(), [](const SplitSource& source) {
    Sample sample;
    if (source.samples->size() > 0) source.samples->read(0, sample);
    return !sample.class_text.empty();
  });
}

// The same for all splits. Only the folder format needs the number of classes in advance.
Classes classes_of(const std::vector<SplitSource>& sources, const WriteOptions& options) {
  Classes classes;
  for (const SplitSource& source : sources) {
    const DatasetInfo& info = source.samples->info();
    if (classes.names.size() < info.class_names.size()) classes.names = info.class_names;
    classes.count = std::max(classes.count, info.classes);
  }
  const bool is_needed = options.format == "folder" || have_texts(sources);
  return classes.count > 0 || !is_needed ? classes : read_classes(sources, options.threads);
}

void check_format(const std::string& format) {
  if (format != "tfrecord" && format != "folder" && format != "idx") {
    bad_input("unknown output format '{}'; allowed: tfrecord, folder, idx", format);
  }
  if (format == "tfrecord" && !TRIREME_WITH_PROTOBUF) {
    fail(ErrorKind::unavailable,
         "this build cannot write TFRecords: install libprotobuf-dev and protobuf-compiler and build again");
  }
}

std::unique_ptr<SplitWriter> make_writer(const std::string& format, const SplitPlan& plan) {
  if (format == "idx") return write_idx(plan);
  if constexpr (TRIREME_WITH_PROTOBUF) {
    if (format == "tfrecord") return write_tfrecords(plan);
  }
  return write_image_folder(plan);
}

// False: stopped.
bool write_splits(const std::vector<SplitSource>& sources, const WriteOptions& options, const std::string& folder,
                  const Classes& classes) {
  std::int64_t all = 0;
  for (const SplitSource& source : sources) all += source.samples->size();
  std::atomic<std::int64_t> done{0};
  for (const SplitSource& source : sources) {
    const auto writer = make_writer(options.format, {.folder = folder,
                                                     .split = source.split,
                                                     .source = source.samples,
                                                     .class_names = classes.names,
                                                     .classes = classes.count,
                                                     .shards = shards_of(source),
                                                     .quality = options.quality});
    for_each_part(writer->parts(), options.threads, options.stop, [&](std::int64_t part) {
      done += writer->write(part);
      if (options.on_progress) options.on_progress(done, all);
    });
    if (options.stop.stop_requested()) return false;
    writer->finish();
  }
  return true;
}

}  // namespace

SampleRange range_of(std::int64_t part, std::int64_t parts, std::int64_t samples) {
  return {part * samples / parts, (part + 1) * samples / parts};
}

bool write_dataset(const std::vector<SplitSource>& sources, const WriteOptions& options) {
  check_format(options.format);
  UnfinishedFolder folder(options.folder, plan_text(sources, options));
  try {
    const Classes classes = classes_of(sources, options);
    if (!write_splits(sources, options, folder.path(), classes)) return false;
    if (!classes.names.empty()) write_class_names(folder.path(), classes.names);
  } catch (const WriteError& error) {  // the user can make room
    fail(ErrorKind::failed, "{}; completed files stay in '{}': the same command continues from there", error.what(),
         folder.path());
  } catch (const Error&) {  // these samples would fail again, so the next attempt will differ
    folder.discard();
    throw;
  }
  folder.finish();
  return true;
}

}  // namespace trireme::data
