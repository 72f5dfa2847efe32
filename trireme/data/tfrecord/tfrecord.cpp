// TFRecord files of tf.Example in ImageNet's schema: train-00000-of-00008 and so on. Opening indexes the records; a
// sample then takes one read. Files compressed as a whole by TensorFlow (GZIP, ZLIB) are unpacked when opened.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <mutex>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/units.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/gzip.hpp"
#include "trireme/data/jpeg.hpp"
#include "trireme/data/parallel.hpp"
#include "trireme/data/readers.hpp"
#include "trireme/data/record_file.hpp"
#include "trireme/data/split_writer.hpp"
#include "trireme/data/tfrecord/example.pb.h"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

// The relevant features of an Example; null: missing key.
struct Found {
  const pb::Feature *encoded = nullptr, *label = nullptr, *format = nullptr, *text = nullptr;
  const pb::Feature *top = nullptr, *left = nullptr, *bottom = nullptr, *right = nullptr;
};

Found find_features(const pb::Example& example) {
  Found found;
  for (const pb::FeatureEntry& entry : example.features().feature()) {
    const std::string& key = entry.key();
    const pb::Feature* value = &entry.value();
    if (key == "image/encoded") found.encoded = value;
    if (key == "image/class/label") found.label = value;
    if (key == "image/class/text") found.text = value;
    if (key == "image/format") found.format = value;
    if (key == "image/object/bbox/ymin") found.top = value;
    if (key == "image/object/bbox/xmin") found.left = value;
    if (key == "image/object/bbox/ymax") found.bottom = value;
    if (key == "image/object/bbox/xmax") found.right = value;
  }
  return found;
}

bool is_jpeg(std::string format) {
  std::transform(format.begin(), format.end(), format.begin(), [](unsigned char c) { return std::tolower(c); });
  return format == "jpeg" || format == "jpg";
}

void read_image(const Found& found, std::string_view where, Sample& sample) {
  if (found.encoded == nullptr || found.encoded->bytes_list().value_size() != 1) {
    fail(ErrorKind::failed, "{}: the key image/encoded is missing, or does not hold one string", where);
  }
  if (found.format != nullptr && found.format->bytes_list().value_size() == 1) {
    const std::string& format = found.format->bytes_list().value(0);
    if (!is_jpeg(format)) fail(ErrorKind::failed, "{}: image/format is '{}'; only JPEG can be read", where, format);
  }
  const std::string& encoded = found.encoded->bytes_list().value(0);
  const auto bytes = std::as_bytes(std::span(encoded));
  sample.encoding = Encoding::jpeg;
  sample.bytes.assign(bytes.begin(), bytes.end());
  sample.height = sample.width = sample.channels = 0;
}

void read_label(const Found& found, std::string_view where, Sample& sample) {
  if (found.label == nullptr || found.label->int64_list().value_size() != 1) {
    fail(ErrorKind::failed, "{}: the key image/class/label is missing, or does not hold one integer", where);
  }
  const std::int64_t label = found.label->int64_list().value(0);
  if (label < 0 || label >= std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::failed, "{}: image/class/label is {}; labels are 0 or more", where, label);
  }
  sample.label = static_cast<std::int32_t>(label);
  const bool is_named = found.text != nullptr && found.text->bytes_list().value_size() == 1;
  sample.class_text = is_named ? found.text->bytes_list().value(0) : "";
}

void read_boxes(const Found& found, std::string_view where, Sample& sample) {
  sample.boxes.clear();
  const auto values = [](const pb::Feature* feature) -> const auto& {
    return (feature == nullptr ? pb::Feature::default_instance() : *feature).float_list().value();
  };
  const auto &top = values(found.top), &left = values(found.left);
  const auto &bottom = values(found.bottom), &right = values(found.right);
  if (left.size() != top.size() || bottom.size() != top.size() || right.size() != top.size()) {
    fail(ErrorKind::failed, "{}: image/object/bbox/ has {} ymin, {} xmin, {} ymax, {} xmax; the numbers must be equal",
         where, top.size(), left.size(), bottom.size(), right.size());
  }
  const auto share = [](float value) { return std::clamp(value, 0.0f, 1.0f); };
  for (int i = 0; i < top.size(); ++i) {
    const Box box{share(top[i]), share(left[i]), share(bottom[i]), share(right[i])};
    // Drawn by people: some boxes have no area, which says nothing about the image.
    if (box.top < box.bottom && box.left < box.right) sample.boxes.push_back(box);
  }
}

// Error(failed) begins with `where` if it is not an Example, a key is missing or a value is invalid. Reuses the memory
// of `example`.
void parse_example(std::span<const std::byte> record, std::string_view where, pb::Example& example, Sample& sample) {
  if (record.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !example.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    fail(ErrorKind::failed, "{}: the record is not a tf.Example", where);
  }
  const Found found = find_features(example);
  read_image(found, where, sample);
  read_label(found, where, sample);
  read_boxes(found, where, sample);
}

// Indexing is bound by the disk: more threads than cores help.
constexpr int kIndexThreads = 16;
// Unpacking more than this takes so long that it is announced.
constexpr std::int64_t kMuchToUnpack = 256 << 20;

// Decided by content, not by name.
bool is_compressed(const InputFile& file) {
  std::array<std::byte, 2> head;
  if (file.size() < std::ssize(head) || begins_with_record(file)) return false;
  file.read(0, head);
  return looks_compressed(head);
}

// Replaces `file` if it is compressed.
RecordIndex index_of(InputFile& file) {
  if (!is_compressed(file)) return index_records(file);
  Unpacked unpacked = unpack(file.path());
  file = std::move(unpacked.file);
  RecordIndex index = index_records(file);
  if (unpacked.problem) index.problem = std::move(unpacked.problem);  // the cause of the missing end
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
            const decltype(OpenOptions::on_broken_file)& on_problem) {
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
    parse_example(record, where, scratch->example, sample);
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
    pb::Example example;
  };

  Place find(std::int64_t index) const {
    const auto next = std::upper_bound(first_.begin(), first_.end(), index);
    const auto file = static_cast<std::size_t>(next - first_.begin() - 1);
    return {&files_[file], records_[file][index - first_[file]]};
  }

  // There are as many as concurrent reads.
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
  std::vector<std::int64_t> first_;                // index of each file's first sample
  std::int64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> unused_;
};

class ExampleBuilder {
 public:
  void add(const char* key, std::string value) { value_of(key).mutable_bytes_list()->add_value(std::move(value)); }
  void add(const char* key, std::int64_t value) { value_of(key).mutable_int64_list()->add_value(value); }
  void add_shares(const char* key, std::span<const Box> boxes, float Box::*side) {
    pb::FloatList& list = *value_of(key).mutable_float_list();
    for (const Box& box : boxes) list.add_value(box.*side);
  }
  std::string text() const { return example_.SerializeAsString(); }

 private:
  pb::Feature& value_of(const char* key) {
    pb::FeatureEntry* entry = example_.mutable_features()->add_feature();
    entry->set_key(key);
    return *entry->mutable_value();
  }
  pb::Example example_;
};

class TfRecordWriter final : public SplitWriter {
 public:
  explicit TfRecordWriter(const SplitPlan& plan) : plan_(plan) {}

  std::int64_t parts() const override { return plan_.shards; }

  std::int64_t write(std::int64_t part) override {
    const SampleRange range = range_of(part, parts(), plan_.source->size());
    const std::string path =
        fmt::format("{}/{}-{:05}-of-{:05}", plan_.folder, to_string(plan_.split), part, plan_.shards);
    if (std::filesystem::exists(path)) return range.end - range.first;
    NewFile file(path);
    Images images(*plan_.source, plan_.quality);
    Sample sample;
    std::vector<std::byte> frame;
    for (std::int64_t i = range.first; i < range.end; ++i) {
      plan_.source->read(i, sample);
      const std::string example = example_of(i, sample, images);
      frame_record(std::as_bytes(std::span(example)), frame);
      file.write(frame);
    }
    file.commit();
    return range.end - range.first;
  }

 private:
  // Encodes pixels as JPEG, and measures existing JPEG images. For one thread.
  class Images {
   public:
    Images(const Dataset& source, int quality) : quality_(quality), images_(source) {}

    std::span<const std::byte> jpeg_of(std::int64_t index, Sample& sample) {
      if (sample.encoding == Encoding::pixels) {
        encode_jpeg(sample, quality_, jpeg_);
        return jpeg_;
      }
      images_.measure(index, sample);
      sample.channels = 3;  // as in ImageNet's files, whatever the image has
      return sample.bytes;
    }

   private:
    int quality_;
    WholeImages images_;
    std::vector<std::byte> jpeg_;
  };

  // A record's data; deterministic.
  std::string example_of(std::int64_t index, Sample& sample, Images& images) const {
    const std::span<const std::byte> jpeg = images.jpeg_of(index, sample);
    const auto label = static_cast<std::size_t>(sample.label);
    const bool is_named = label < plan_.class_names.size();
    ExampleBuilder builder;
    builder.add("image/height", sample.height);
    builder.add("image/width", sample.width);
    builder.add("image/colorspace", sample.channels == 1 ? "Gray" : "RGB");
    builder.add("image/channels", sample.channels);
    builder.add("image/class/label", sample.label);
    builder.add("image/class/text", is_named ? plan_.class_names[label] : std::to_string(sample.label));
    builder.add_shares("image/object/bbox/ymin", sample.boxes, &Box::top);
    builder.add_shares("image/object/bbox/xmin", sample.boxes, &Box::left);
    builder.add_shares("image/object/bbox/ymax", sample.boxes, &Box::bottom);
    builder.add_shares("image/object/bbox/xmax", sample.boxes, &Box::right);
    builder.add("image/format", "JPEG");
    builder.add("image/filename", std::filesystem::path(plan_.source->where(index)).filename().string());
    builder.add("image/encoded", std::string(reinterpret_cast<const char*>(jpeg.data()), jpeg.size()));
    return builder.text();
  }

  SplitPlan plan_;
};

}  // namespace

std::shared_ptr<const Dataset> open_tfrecords(const std::string& path, const OpenOptions& options) {
  const bool is_file = std::filesystem::is_regular_file(path);
  const std::string folder = is_file ? std::filesystem::path(path).parent_path().string() : path;
  return std::make_shared<TfRecords>(find_tfrecords(path, options.split), class_names_in(folder.empty() ? "." : folder),
                                     options.on_broken_file);
}

std::unique_ptr<SplitWriter> write_tfrecords(const SplitPlan& plan) { return std::make_unique<TfRecordWriter>(plan); }

}  // namespace trireme::data
