// Writes idx files: grey images of one size, and their labels. Colour images become grey.
#include <filesystem>
#include <limits>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/split_writer.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kSamplesPerPart = 1024;
constexpr std::int64_t kMostLabels = 256;

void append_big_endian(std::vector<std::byte>& bytes, std::int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(value >> shift & 0xff));
}

std::vector<std::byte> header_of(const std::vector<std::int64_t>& extents) {
  std::vector<std::byte> header;
  append_big_endian(header, 0x0800 + std::ssize(extents));
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
      bad_input("idx holds up to {} images; these are {}", std::numeric_limits<std::int32_t>::max(), source_.size());
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

  std::int64_t parts() const override { return (source_.size() + kSamplesPerPart - 1) / kSamplesPerPart; }

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
      bad_input("{} has {}x{} pixels, but the first image has {}x{}: idx holds images of one size",
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

std::unique_ptr<SplitWriter> write_idx(const SplitPlan& plan) { return std::make_unique<IdxWriter>(plan); }

}  // namespace trireme::data
