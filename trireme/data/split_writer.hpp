// Writes one split in one format, in parts that threads may write concurrently. Driven by write_dataset() (writer.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/data/formats.hpp"

namespace trireme::data {

struct SplitPlan {
  std::string folder;
  Split split = Split::train;
  std::shared_ptr<const Dataset> source;
  std::vector<std::string> class_names;  // by label; empty: unknown
  std::int32_t classes = 0;              // 0: unknown
  int shards = 1;
  int quality = 90;
};

class SplitWriter {
 public:
  SplitWriter() = default;
  virtual ~SplitWriter() = default;
  SplitWriter(const SplitWriter&) = delete;
  SplitWriter& operator=(const SplitWriter&) = delete;

  virtual std::int64_t parts() const = 0;
  virtual std::int64_t write(std::int64_t part) = 0;  // returns its samples; skips an existing part
  virtual void finish() {}                            // after all parts
};

std::unique_ptr<SplitWriter> write_idx(const SplitPlan& plan);
std::unique_ptr<SplitWriter> write_image_folder(const SplitPlan& plan);
std::unique_ptr<SplitWriter> write_tfrecords(const SplitPlan& plan);  // in builds with protobuf

// One of several parts that are as even as possible.
struct SampleRange {
  std::int64_t first = 0, end = 0;
};
SampleRange range_of(std::int64_t part, std::int64_t parts, std::int64_t samples);

}  // namespace trireme::data
