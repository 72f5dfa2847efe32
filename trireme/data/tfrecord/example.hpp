// tf.Example in ImageNet's schema, to a Sample and back. Used by the TFRecord reader and writer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

namespace pb {
class Example;
}

// The memory that parsing needs, used again from record to record. For one thread at a time.
class ExampleParser {
 public:
  ExampleParser();
  ~ExampleParser();

  // Error(failed) that begins with `where` if it is no Example, a key is missing or a value cannot be.
  void parse(std::span<const std::byte> record, std::string_view where, Sample& sample);

 private:
  std::unique_ptr<pb::Example> example_;
};

struct ExampleImage {
  std::span<const std::byte> jpeg;
  int height = 0, width = 0, channels = 0;
  std::int32_t label = 0;
  std::string class_name, file_name;
  std::span<const Box> boxes;
};

// A record's data, the same bytes for the same image.
std::string serialize_example(const ExampleImage& image);

}  // namespace trireme::data
