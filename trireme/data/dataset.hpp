// Labelled images by number, as they lie in files: what every format becomes. Made by open_dataset() (formats.hpp),
// read by the pipeline, which decodes; `trireme data` converts by it.
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

// A part of an image, in shares of its height and width.
struct Box {
  float top = 0, left = 0, bottom = 1, right = 1;
};

// One of them, not decoded. Its memory is used again from read to read.
struct Sample {
  Encoding encoding = Encoding::pixels;
  std::vector<std::byte> bytes;
  int height = 0, width = 0, channels = 0;  // of pixels; 0 where only decoding tells
  std::int32_t label = 0;
  std::vector<Box> boxes;  // where the object is, if the format knows
  std::string class_text;  // what the sample itself calls its class; empty: it does not, or not by itself

  // Becomes a sample of pixels without boxes; the bytes, as many as these need, are for the caller to fill.
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

// Files that lie among the images and are not read.
struct OtherFiles {
  std::int64_t count = 0;
  std::string example;  // the path of one
};

struct DatasetInfo {
  std::string format;                                  // "tfrecord", "folder", "idx", "cifar10", "synthetic"
  std::int32_t classes = 0;                            // labels are below this; 0: not known without reading all
  std::vector<std::string> class_names;                // by label; empty: the format has none
  int height = 0, width = 0, channels = 0;             // of every image; 0: they differ
  std::map<std::string, OtherFiles> other_files = {};  // by the ending of their names; "/": folders
};

class Dataset {
 public:
  Dataset() = default;
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual const DatasetInfo& info() const = 0;
  virtual std::int64_t size() const = 0;
  // Threads may read at the same time. Error(failed) that names file and place where a sample is broken or cannot be
  // read; the others are not affected.
  virtual void read(std::int64_t index, Sample& sample) const = 0;
  // "train-00000-of-00008, byte 1234": for messages.
  virtual std::string where(std::int64_t index) const = 0;
};

}  // namespace trireme::data
