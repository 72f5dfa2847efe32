// Writes JPEG files into one folder per class.
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/jpeg_encoder.hpp"
#include "trireme/data/split_writer.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kSamplesPerPart = 64;

class ImageFolderWriter final : public SplitWriter {
 public:
  explicit ImageFolderWriter(const SplitPlan& plan) : source_(*plan.source), quality_(plan.quality) {
    const std::filesystem::path root =
        std::filesystem::path(plan.folder) / (plan.split == Split::train ? "train" : "val");
    for (std::int32_t label = 0; label < plan.classes; ++label) {
      const bool is_named = static_cast<std::size_t>(label) < plan.class_names.size();
      const std::string name = is_named ? plan.class_names[label] : numbered_class(label, plan.classes);
      if (name.front() == '.' || name.find('/') != std::string::npos) {
        bad_input("the class '{}' cannot be the name of a folder; remove {} to have numbers instead", name,
                  kClassNamesFile);
      }
      folders_.push_back(root / name);
      make_folder(folders_.back());
    }
  }

  std::int64_t parts() const override { return (source_.size() + kSamplesPerPart - 1) / kSamplesPerPart; }

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

std::unique_ptr<SplitWriter> write_image_folder(const SplitPlan& plan) {
  return std::make_unique<ImageFolderWriter>(plan);
}

}  // namespace trireme::data
