// The reader of TFRecord files in ImageNet's schema. Where each record begins is found out at open; a read is then one
// read of the file. Files that TensorFlow has compressed as a whole (GZIP, ZLIB) are uncompressed at open.
#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>

#include "trireme/base/error.hpp"
#include "trireme/base/log_line.hpp"
#include "trireme/base/units.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/gzip.hpp"
#include "trireme/data/parallel.hpp"
#include "trireme/data/readers.hpp"
#include "trireme/data/record_file.hpp"
#include "trireme/data/tfrecord/example.hpp"

namespace trireme::data {
namespace {

// Walking is waiting for the disk: more threads than cores are of use.
constexpr int kIndexThreads = 16;
// Compressed files of more than this take so long that it is said.
constexpr std::int64_t kMuchToUnpack = 256 << 20;

// What a file begins with decides, not its name.
bool is_compressed(const InputFile& file) {
  std::array<std::byte, 2> head;
  if (file.size() < std::ssize(head) || begins_with_record(file)) return false;
  file.read(0, head);
  return looks_compressed(head);
}

// Takes the place of a file that is compressed.
RecordIndex index_of(InputFile& file) {
  if (!is_compressed(file)) return index_records(file);
  Unpacked unpacked = unpack(file.path());
  file = std::move(unpacked.file);
  RecordIndex index = index_records(file);
  if (unpacked.problem) index.problem = std::move(unpacked.problem);  // the cause of what is missing at the end
  return index;
}

void say_if_long(const std::vector<InputFile>& files) {
  std::int64_t bytes = 0;
  for (const InputFile& file : files) bytes += is_compressed(file) ? file.size() : 0;
  if (bytes > kMuchToUnpack) {
    log_line(fmt::format("uncompressing {} of TFRecords", format_bytes(static_cast<double>(bytes))));
  }
}

class TfRecords final : public Dataset {
 public:
  TfRecords(const std::vector<std::string>& paths, std::vector<std::string> class_names,
            const ProblemHandler& on_problem) {
    info_.format = "tfrecord";
    info_.classes = static_cast<std::int32_t>(class_names.size());
    info_.class_names = std::move(class_names);
    for (const std::string& path : paths) files_.emplace_back(path);
    say_if_long(files_);
    std::vector<RecordIndex> indices(paths.size());
    for_each_part(std::ssize(paths), kIndexThreads, {}, [&](std::int64_t i) { indices[i] = index_of(files_[i]); });
    for (RecordIndex& index : indices) {
      if (index.problem && !on_problem) bad_input("{}", *index.problem);
      if (index.problem) on_problem(*index.problem);
      first_.push_back(size_);
      size_ += std::ssize(index.records);
      records_.push_back(std::move(index.records));
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }

  void read(std::int64_t index, Sample& sample) const override {
    const Place place = find(index);
    std::unique_ptr<Scratch> scratch = take_scratch();
    const auto record = read_record(*place.file, place.record, scratch->buffer);
    const std::string where = fmt::format("{}, byte {}", place.file->path(), place.record.offset);
    scratch->parser.parse(record, where, sample);
    if (info_.classes > 0 && sample.label >= info_.classes) {
      fail(ErrorKind::failed, "{}: the label is {}, but {} names only {} classes", where, sample.label, kClassNamesFile,
           info_.classes);
    }
    give_back(std::move(scratch));
  }

  std::string where(std::int64_t index) const override {
    const Place place = find(index);
    return fmt::format("{}, byte {}", place.file->name(), place.record.offset);
  }

 private:
  struct Place {
    const InputFile* file;
    RecordPlace record;
  };
  struct Scratch {
    std::vector<std::byte> buffer;
    ExampleParser parser;
  };

  Place find(std::int64_t index) const {
    const auto next = std::upper_bound(first_.begin(), first_.end(), index);
    const auto file = static_cast<std::size_t>(next - first_.begin() - 1);
    return {&files_[file], records_[file][index - first_[file]]};
  }

  // As many as ever read at the same time.
  std::unique_ptr<Scratch> take_scratch() const {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(unused_.back());
    unused_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) const {
    const std::lock_guard lock(mutex_);
    unused_.push_back(std::move(scratch));
  }

  DatasetInfo info_;
  std::vector<InputFile> files_;
  std::vector<std::vector<RecordPlace>> records_;  // by file
  std::vector<std::int64_t> first_;                // the number of each file's first sample
  std::int64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> unused_;
};

}  // namespace

std::shared_ptr<const Dataset> open_tfrecords(const std::string& path, Split split, const ProblemHandler& on_problem) {
  const bool is_file = std::filesystem::is_regular_file(path);
  const std::string folder = is_file ? std::filesystem::path(path).parent_path().string() : path;
  return std::make_shared<TfRecords>(find_tfrecords(path, split), class_names_in(folder.empty() ? "." : folder),
                                     on_problem);
}

}  // namespace trireme::data
