// Labeled images by index, still encoded: the common form of all formats. Made by open_dataset() (formats.hpp), decoded
// by the pipeline, converted by `trireme data`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::data {

enum class Encoding : std::uint8_t {
  jpeg,
  pixels,  // height x width x channels, one byte each
};

// Part of an image, as fractions of height and width.
struct Box {
  float top = 0, left = 0, bottom = 1, right = 1;
};

// One image, not decoded. Its memory is reused between reads.
struct Sample {
  Encoding encoding = Encoding::pixels;
  std::vector<std::byte> bytes;
  int height = 0, width = 0, channels = 0;  // of pixels; 0 if only decoding tells
  std::int32_t label = 0;
  std::vector<Box> boxes;  // around the object, if the format has them
  std::string class_text;  // the sample's own name for its class; empty: none

  // Turns it into a sample of pixels without boxes; resizes the bytes, which the caller fills.
  void set_pixels(int rows, int columns, int values, std::int32_t class_label) {
    encoding = Encoding::pixels;
    height = rows;
    width = columns;
    channels = values;
    label = class_label;
    boxes.clear();
    class_text.clear();
    bytes.resize(std::size_t{1} * rows * columns * values);
  }
};

// Files among the images that are not read.
struct OtherFiles {
  std::int64_t count = 0;
  std::string example;  // path of one
};

struct DatasetInfo {
  std::string format;                                  // "tfrecord", "folder", "idx", "cifar10", "synthetic"
  std::int32_t classes = 0;                            // labels are below this; 0: unknown without reading all
  std::vector<std::string> class_names;                // by label; empty: the format has none
  int height = 0, width = 0, channels = 0;             // of every image; 0: they vary
  std::map<std::string, OtherFiles> other_files = {};  // by file extension; "/": folders
};

class Dataset {
 public:
  Dataset() = default;
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual const DatasetInfo& info() const = 0;
  virtual std::int64_t size() const = 0;
  // Thread-safe. Error(failed) names file and place if a sample is broken or unreadable; others are not affected.
  virtual void read(std::int64_t index, Sample& sample) const = 0;
  virtual std::string where(std::int64_t index) const = 0;  // for messages: "train-00000-of-00008, byte 1234"
};

}  // namespace trireme::data
