// Writes TFRecord files in ImageNet's schema: train-00000-of-00008 and so on.
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/class_names.hpp"
#include "trireme/data/jpeg_encoder.hpp"
#include "trireme/data/record_file.hpp"
#include "trireme/data/split_writer.hpp"
#include "trireme/data/tfrecord/example.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

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
      const std::string example = serialize_example(describe(i, sample, images));
      frame_record(std::as_bytes(std::span(example)), frame);
      file.write(frame);
    }
    file.commit();
    return range.end - range.first;
  }

 private:
  // Makes JPEG images of pixels, and finds out the size of those that are. For one thread.
  class Images {
   public:
    Images(const Dataset& source, int quality) : quality_(quality), images_(source) {}

    std::span<const std::byte> jpeg_of(std::int64_t index, Sample& sample) {
      if (sample.encoding == Encoding::pixels) {
        encode_jpeg(sample, quality_, jpeg_);
        return jpeg_;
      }
      images_.measure(index, sample);
      sample.channels = 3;  // what ImageNet's files say, whatever the image has
      return sample.bytes;
    }

   private:
    int quality_;
    WholeImages images_;
    std::vector<std::byte> jpeg_;
  };

  ExampleImage describe(std::int64_t index, Sample& sample, Images& images) const {
    ExampleImage image;
    image.jpeg = images.jpeg_of(index, sample);
    image.height = sample.height;
    image.width = sample.width;
    image.channels = sample.channels;
    image.label = sample.label;
    const auto label = static_cast<std::size_t>(sample.label);
    image.class_name = label < plan_.class_names.size() ? plan_.class_names[label] : std::to_string(sample.label);
    image.file_name = std::filesystem::path(plan_.source->where(index)).filename();
    image.boxes = sample.boxes;
    return image;
  }

  SplitPlan plan_;
};

}  // namespace

std::unique_ptr<SplitWriter> write_tfrecords(const SplitPlan& plan) { return std::make_unique<TfRecordWriter>(plan); }

}  // namespace trireme::data
