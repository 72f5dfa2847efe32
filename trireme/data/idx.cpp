// Idx files, the format of MNIST: a file of images and a file of labels per split. An idx file has a magic number (two
// zeros, value type, number of dimensions), the dimensions as 32-bit big-endian numbers, and the values. The reader
// also takes compressed files. The writer converts color to gray.
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/gzip.hpp"
#include "trireme/data/readers.hpp"
#include "trireme/data/split_writer.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t kMostExtents = 3;
constexpr std::uint32_t kUnsignedBytes = 0x0800;

bool is_compressed(const std::string& path) { return path.ends_with(".gz"); }

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

// A file of unsigned bytes with a known number of dimensions. Compressed ones are held in memory.
class IdxFile {
 public:
  IdxFile(const std::string& path, std::size_t extents);

  const std::string& path() const { return path_; }
  std::int64_t extent(std::size_t axis) const { return extents_[axis]; }
  std::int64_t values() const { return values_; }
  std::int64_t offset_of(std::int64_t value) const { return header_bytes_ + value; }
  void read(std::int64_t value, std::span<std::byte> out) const {
    if (file_) return file_->read(offset_of(value), out);
    const auto from = memory_.begin() + offset_of(value);
    std::copy(from, from + std::ssize(out), out.begin());
  }

 private:
  void parse_header(std::span<const std::byte> header, std::size_t extents);

  std::string path_;
  std::int64_t header_bytes_;
  std::array<std::int64_t, kMostExtents> extents_{};
  std::int64_t values_ = 1;
  std::optional<InputFile> file_;
  std::vector<std::byte> memory_;
};

IdxFile::IdxFile(const std::string& path, std::size_t extents)
    : path_(path), header_bytes_(static_cast<std::int64_t>(4 + 4 * extents)) {
  std::vector<std::byte> header(header_bytes_);
  if (is_compressed(path)) {
    header = gunzip_head(path, header.size());
    parse_header(header, extents);
    memory_ = gunzip(path, header_bytes_ + values_);
    return;
  }
  file_.emplace(path);
  header.resize(std::min(file_->size(), header_bytes_));
  file_->read(0, header);
  parse_header(header, extents);
  if (file_->size() != header_bytes_ + values_) {
    bad_input("{}: the file has {} bytes, but its header says {}", path, file_->size(), header_bytes_ + values_);
  }
}

void IdxFile::parse_header(std::span<const std::byte> header, std::size_t extents) {
  if (header.size() < static_cast<std::size_t>(header_bytes_)) {
    bad_input("{}: the file ends at byte {}, inside its header of {} bytes", path_, header.size(), header_bytes_);
  }
  const std::uint32_t magic = big_endian(header), expected = kUnsignedBytes | static_cast<std::uint32_t>(extents);
  if (magic != expected) {
    bad_input("{}, byte 0: the magic number is {:#010x}; {:#010x} was expected: {} extents of unsigned bytes", path_,
              magic, expected, extents);
  }
  for (std::size_t axis = 0; axis < extents; ++axis) {
    extents_[axis] = big_endian(header.subspan(4 + 4 * axis));
    if (__builtin_mul_overflow(values_, extents_[axis], &values_)) {
      bad_input("{}, byte {}: {} values along axis {} are more than a file can hold", path_, 4 + 4 * axis,
                extents_[axis], axis);
    }
  }
}

// A split's file of some kind ("images-idx3-ubyte"), under one of the usual names.
std::optional<std::string> find_file(const std::string& folder, Split split, const std::string& what,
                                     const std::string& type) {
  const auto prefixes =
      split == Split::train ? std::vector<const char*>{"train"} : std::vector<const char*>{"t10k", "test"};
  for (const char* prefix : prefixes) {
    for (const char* dot : {"-", "."}) {
      for (const char* suffix : {"", ".gz"}) {
        const std::filesystem::path path = fmt::format("{}/{}-{}{}{}{}", folder, prefix, what, dot, type, suffix);
        if (std::filesystem::exists(path)) return path;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_images(const std::string& folder, Split split) {
  return find_file(folder, split, "images", "idx3-ubyte");
}

std::optional<std::string> find_labels(const std::string& folder, Split split) {
  return find_file(folder, split, "labels", "idx1-ubyte");
}

std::vector<std::byte> read_labels(const IdxFile& file) {
  std::vector<std::byte> labels(file.values());
  file.read(0, labels);
  return labels;
}

std::int32_t label_limit(std::span<const std::byte> labels) {
  return labels.empty() ? 0 : std::to_integer<std::int32_t>(*std::max_element(labels.begin(), labels.end())) + 1;
}

class IdxDataset final : public Dataset {
 public:
  IdxDataset(const std::string& folder, Split split)
      : images_(*find_images(folder, split), 3), labels_(labels_of(folder, split)) {
    const auto possible = [](std::int64_t side) { return side > 0 && side <= std::numeric_limits<int>::max(); };
    if (!possible(images_.extent(1)) || !possible(images_.extent(2))) {
      bad_input("{}: images of {}x{} pixels", images_.path(), images_.extent(1), images_.extent(2));
    }
    // Validation data may lack a class that training data has.
    std::int32_t classes = label_limit(labels_);
    if (split == Split::validation) {
      if (const auto others = find_labels(folder, Split::train)) {
        classes = std::max(classes, label_limit(read_labels(IdxFile(*others, 1))));
      }
    }
    info_ = {.format = "idx",
             .classes = classes,
             .class_names = class_names_in(folder),
             .height = static_cast<int>(images_.extent(1)),
             .width = static_cast<int>(images_.extent(2)),
             .channels = 1};
    if (info_.class_names.empty()) return;
    const auto names = static_cast<std::int32_t>(info_.class_names.size());
    if (classes > names) {
      bad_input("{}: there is a label {}, but {} names only {} classes", folder, classes - 1, kClassNamesFile, names);
    }
    info_.classes = names;
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return images_.extent(0); }

  void read(std::int64_t index, Sample& sample) const override {
    sample.set_pixels(info_.height, info_.width, 1, std::to_integer<std::int32_t>(labels_[index]));
    images_.read(index * std::ssize(sample.bytes), sample.bytes);
  }

  std::string where(std::int64_t index) const override {
    return fmt::format("{}, image {}", std::filesystem::path(images_.path()).filename().string(), index);
  }

 private:
  std::vector<std::byte> labels_of(const std::string& folder, Split split) const {
    const auto path = find_labels(folder, split);
    if (!path) {
      bad_input("'{}' has no labels beside it; the folder holds {}", images_.path(), contents_of(folder));
    }
    const IdxFile file(*path, 1);
    if (file.extent(0) != images_.extent(0)) {
      bad_input("'{}' has {} labels, but '{}' has {} images", *path, file.extent(0), images_.path(), images_.extent(0));
    }
    return read_labels(file);
  }

  IdxFile images_;
  std::vector<std::byte> labels_;
  DatasetInfo info_;
};

constexpr std::int64_t kCopiedPerPart = 1024;
constexpr std::int64_t kMostLabels = 256;

void append_big_endian(std::vector<std::byte>& bytes, std::int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(value >> shift & 0xff));
}

std::vector<std::byte> header_of(const std::vector<std::int64_t>& extents) {
  std::vector<std::byte> header;
  append_big_endian(header, kUnsignedBytes + std::ssize(extents));
  for (const std::int64_t extent : extents) append_big_endian(header, extent);
  return header;
}

class IdxWriter final : public SplitWriter {
 public:
  explicit IdxWriter(const SplitPlan& plan) : source_(*plan.source) {
    const std::string prefix = plan.folder + (plan.split == Split::train ? "/train" : "/t10k");
    images_path_ = prefix + "-images-idx3-ubyte";
    labels_path_ = prefix + "-labels-idx1-ubyte";
    is_done_ = std::filesystem::exists(images_path_) && std::filesystem::exists(labels_path_);
    if (is_done_) return;
    if (source_.size() > std::numeric_limits<std::int32_t>::max()) {
      bad_input("idx holds at most {} images, but there are {}", std::numeric_limits<std::int32_t>::max(),
                source_.size());
    }
    Sample first;
    if (source_.size() > 0) {
      source_.read(0, first);
      WholeImages(source_).decode(0, first, 1);
    }
    height_ = first.height;
    width_ = first.width;
    images_ = std::make_unique<NewFile>(images_path_);
    header_ = header_of({source_.size(), height_, width_});
    images_->write_at(0, header_);
    labels_.resize(source_.size());
  }

  std::int64_t parts() const override { return (source_.size() + kCopiedPerPart - 1) / kCopiedPerPart; }

  std::int64_t write(std::int64_t part) override {
    const SampleRange range = range_of(part, parts(), source_.size());
    if (is_done_) return range.end - range.first;
    WholeImages images(source_);
    Sample sample;
    std::vector<std::byte> pixels;
    for (std::int64_t i = range.first; i < range.end; ++i) {
      read_grey(i, sample, images);
      pixels.insert(pixels.end(), sample.bytes.begin(), sample.bytes.end());
      labels_[i] = static_cast<std::byte>(sample.label);
    }
    const std::int64_t image_bytes = std::int64_t{height_} * width_;
    images_->write_at(std::ssize(header_) + range.first * image_bytes, pixels);
    return range.end - range.first;
  }

  void finish() override {
    if (is_done_) return;
    images_->commit();
    NewFile labels(labels_path_);
    labels.write(header_of({source_.size()}));
    labels.write(labels_);
    labels.commit();
  }

 private:
  void read_grey(std::int64_t index, Sample& sample, WholeImages& images) const {
    source_.read(index, sample);
    images.decode(index, sample, 1);
    if (sample.height != height_ || sample.width != width_) {
      bad_input("{} has {}x{} pixels, but the first image has {}x{}: all images in idx must have the same size",
                source_.where(index), sample.width, sample.height, width_, height_);
    }
    if (sample.label >= kMostLabels) {
      bad_input("{} has the label {}: idx holds labels below {}", source_.where(index), sample.label, kMostLabels);
    }
  }

  const Dataset& source_;
  std::string images_path_, labels_path_;
  bool is_done_ = false;
  std::unique_ptr<NewFile> images_;
  std::vector<std::byte> header_, labels_;
  int height_ = 0, width_ = 0;
};

}  // namespace

bool has_idx(const std::string& folder, Split split) { return find_images(folder, split).has_value(); }

std::shared_ptr<const Dataset> open_idx(const std::string& folder, const OpenOptions& options) {
  return std::make_shared<IdxDataset>(folder, options.split);
}

std::unique_ptr<SplitWriter> write_idx(const SplitPlan& plan) { return std::make_unique<IdxWriter>(plan); }

}  // namespace trireme::data
