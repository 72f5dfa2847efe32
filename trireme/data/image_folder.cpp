// JPEG files in one folder per class: train/<class>/*.jpg and val/<class>/*.jpg.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/jpeg.hpp"
#include "trireme/data/readers.hpp"
#include "trireme/data/split_writer.hpp"

namespace trireme::data {
namespace {

// Larger files are not photographs, and would be read into memory whole.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

std::optional<std::string> find_split(const std::string& folder, Split split) {
  const auto names =
      split == Split::train ? std::vector<const char*>{"train"} : std::vector<const char*>{"val", "validation", "test"};
  for (const char* name : names) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (std::filesystem::is_directory(path)) return path;
  }
  return std::nullopt;
}

std::string lower_extension(const std::string& name) {
  std::string extension = std::filesystem::path(name).extension();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

bool is_jpeg_name(const std::string& name) {
  const std::string extension = lower_extension(name);
  return extension == ".jpg" || extension == ".jpeg";
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [&](const std::string& name) {
    return !std::filesystem::is_directory(std::filesystem::path(folder) / name);
  });
  return names;
}

// From both splits, so that labels mean the same in each.
std::vector<std::string> classes_of(const std::string& folder) {
  std::vector<std::string> names = class_names_in(folder);
  if (!names.empty()) return names;
  for (const Split split : {Split::train, Split::validation}) {
    if (const auto path = find_split(folder, split)) {
      const std::vector<std::string> more = folders_in(*path);
      names.insert(names.end(), more.begin(), more.end());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const std::string& folder, Split split) : root_(*find_split(folder, split)) {
    info_.format = "folder";
    info_.class_names = classes_of(folder);
    info_.classes = static_cast<std::int32_t>(info_.class_names.size());
    const std::vector<std::string> folders = folders_in(root_);
    for (const std::string& name : folders) add_class(name);
    for (const std::string& name : list_folder(root_)) {
      if (!std::binary_search(folders.begin(), folders.end(), name)) add_other(name);
    }
    if (samples_.empty()) {
      const std::string others = other_files_text(info_);
      bad_input("'{}' has no JPEG files in class folders ({}); it holds {}{}{}", root_, kImageFolders,
                contents_of(root_), others.empty() ? "" : ", and there ", others);
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(samples_); }

  void read(std::int64_t index, Sample& sample) const override {
    const std::string path = path_of(index);
    const InputFile file(path, ErrorKind::failed);  // an unreadable file is a broken sample, not a broken data set
    if (file.size() == 0) fail(ErrorKind::failed, "{}: the file is empty", path);
    if (file.size() > kMostBytes) fail(ErrorKind::failed, "{}: {} bytes is too large for an image", path, file.size());
    sample.bytes.resize(file.size());
    file.read(0, sample.bytes);
    sample.encoding = Encoding::jpeg;
    sample.height = sample.width = sample.channels = 0;
    sample.label = samples_[index].label;
    sample.boxes.clear();
    sample.class_text.clear();
  }

  std::string where(std::int64_t index) const override { return path_of(index); }

 private:
  struct Entry {
    std::string file;
    std::int32_t label;
  };

  void add_class(const std::string& name) {
    const auto found = std::find(info_.class_names.begin(), info_.class_names.end(), name);
    if (found == info_.class_names.end()) {
      bad_input("'{}/{}' is not a class in {}", root_, name, kClassNamesFile);
    }
    const auto label = static_cast<std::int32_t>(found - info_.class_names.begin());
    for (std::string& file : list_folder(std::filesystem::path(root_) / name)) {
      if (is_jpeg_name(file)) {
        samples_.push_back({std::move(file), label});
      } else {
        add_other(fmt::format("{}/{}", name, file));
      }
    }
  }

  void add_other(const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(root_) / name;
    OtherFiles& others = info_.other_files[std::filesystem::is_directory(path) ? "/" : lower_extension(name)];
    if (others.count++ == 0) others.example = path;
  }

  std::string path_of(std::int64_t index) const {
    const Entry& entry = samples_[index];
    return fmt::format("{}/{}/{}", root_, info_.class_names[entry.label], entry.file);
  }

  std::string root_;
  std::vector<Entry> samples_;
  DatasetInfo info_;
};

constexpr std::int64_t kFilesPerPart = 64;

class ImageFolderWriter final : public SplitWriter {
 public:
  explicit ImageFolderWriter(const SplitPlan& plan) : source_(*plan.source), quality_(plan.quality) {
    const std::filesystem::path root =
        std::filesystem::path(plan.folder) / (plan.split == Split::train ? "train" : "val");
    for (std::int32_t label = 0; label < plan.classes; ++label) {
      const bool is_named = static_cast<std::size_t>(label) < plan.class_names.size();
      const std::string name = is_named ? plan.class_names[label] : numbered_class(label, plan.classes);
      if (name.front() == '.' || name.find('/') != std::string::npos) {
        bad_input("the class '{}' cannot be a folder name; remove {} to use numbers instead", name, kClassNamesFile);
      }
      folders_.push_back(root / name);
      make_folder(folders_.back());
    }
  }

  std::int64_t parts() const override { return (source_.size() + kFilesPerPart - 1) / kFilesPerPart; }

  std::int64_t write(std::int64_t part) override {
    const SampleRange range = range_of(part, parts(), source_.size());
    Sample sample;
    std::vector<std::byte> jpeg;
    for (std::int64_t i = range.first; i < range.end; ++i) {
      source_.read(i, sample);
      const std::string path = folders_.at(sample.label) / fmt::format("{:08}.jpg", i);
      if (std::filesystem::exists(path)) continue;
      if (sample.encoding == Encoding::pixels) encode_jpeg(sample, quality_, jpeg);
      NewFile file(path);
      file.write(sample.encoding == Encoding::pixels ? jpeg : sample.bytes);
      file.commit_unsynced();
    }
    return range.end - range.first;
  }

 private:
  const Dataset& source_;
  int quality_;
  std::vector<std::filesystem::path> folders_;  // by label
};

}  // namespace

bool has_image_folder(const std::string& folder, Split split) {
  const auto path = find_split(folder, split);
  return path && !folders_in(*path).empty();
}

std::shared_ptr<const Dataset> open_image_folder(const std::string& folder, const OpenOptions& options) {
  return std::make_shared<ImageFolder>(folder, options.split);
}

std::unique_ptr<SplitWriter> write_image_folder(const SplitPlan& plan) {
  return std::make_unique<ImageFolderWriter>(plan);
}

}  // namespace trireme::data
