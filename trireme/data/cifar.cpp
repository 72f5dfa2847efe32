// Reader of CIFAR-10's binary version: records of a label and 32 x 32 pixels, red plane first, then green and blue.
#include <array>
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/readers.hpp"

namespace trireme::data {
namespace {

constexpr int kSide = 32, kChannels = 3, kClasses = 10, kTrainFiles = 5;
constexpr std::int64_t kPlaneBytes = kSide * kSide;
constexpr std::int64_t kRecordBytes = 1 + kChannels * kPlaneBytes;

// The archive unpacks to its own folder; accepts that folder or its parent.
std::filesystem::path inner_folder(const std::string& folder) {
  const std::filesystem::path unpacked = std::filesystem::path(folder) / "cifar-10-batches-bin";
  return std::filesystem::is_directory(unpacked) ? unpacked : std::filesystem::path(folder);
}

std::vector<std::string> file_names(Split split) {
  if (split == Split::validation) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= kTrainFiles; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  return names;
}

class CifarDataset final : public Dataset {
 public:
  CifarDataset(const std::filesystem::path& folder, Split split) {
    info_ = {.format = "cifar10",
             .classes = kClasses,
             .class_names = {},
             .height = kSide,
             .width = kSide,
             .channels = kChannels};
    const std::filesystem::path names = folder / "batches.meta.txt";
    if (std::filesystem::exists(names)) {
      info_.class_names = read_class_names(names);
      if (info_.class_names.size() != kClasses) {
        bad_input("{}: {} class names; CIFAR-10 has {}", names.string(), info_.class_names.size(), kClasses);
      }
    }
    for (const std::string& name : file_names(split)) add(folder / name);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }

  void read(std::int64_t index, Sample& sample) const override {
    const Place place = find(index);
    std::array<std::byte, kRecordBytes> record;
    place.file->read(place.offset, record);
    const int label = std::to_integer<int>(record[0]);
    if (label >= kClasses) {
      fail(ErrorKind::failed, "{}, byte {}: the label is {}; labels are below {}", place.file->path(), place.offset,
           label, kClasses);
    }
    sample.set_pixels(kSide, kSide, kChannels, label);
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const std::byte* plane = record.data() + 1 + channel * kPlaneBytes;
      for (std::size_t pixel = 0; pixel < kPlaneBytes; ++pixel)
        sample.bytes[pixel * kChannels + channel] = plane[pixel];
    }
  }

  std::string where(std::int64_t index) const override {
    const Place place = find(index);
    return fmt::format("{}, byte {}", place.file->name(), place.offset);
  }

 private:
  struct Place {
    const InputFile* file;
    std::int64_t offset;
  };

  void add(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) {
      bad_input("there is no '{}'; the folder holds {}", path.string(), contents_of(path.parent_path()));
    }
    const InputFile& file = files_.emplace_back(path);
    if (file.size() % kRecordBytes != 0) {
      bad_input("{}, byte {}: the file ends inside a record of {} bytes", path.string(), file.size(), kRecordBytes);
    }
    size_ += file.size() / kRecordBytes;
  }

  Place find(std::int64_t index) const {
    std::int64_t offset = index * kRecordBytes;
    for (const InputFile& file : files_) {
      if (offset < file.size()) return {&file, offset};
      offset -= file.size();
    }
    bad_input("CIFAR-10: there is no sample {}; there are {}", index, size_);
  }

  std::vector<InputFile> files_;
  std::int64_t size_ = 0;
  DatasetInfo info_;
};

}  // namespace

bool has_cifar10(const std::string& folder, Split split) {
  return std::filesystem::exists(inner_folder(folder) / file_names(split).front());
}

std::shared_ptr<const Dataset> open_cifar10(const std::string& folder, const OpenOptions& options) {
  return std::make_shared<CifarDataset>(inner_folder(folder), options.split);
}

}  // namespace trireme::data
