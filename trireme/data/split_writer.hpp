// Writes one split of a data set in one format, in parts that threads may write at the same time. Made and driven by
// write_dataset() (writer.cpp).
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
  std::vector<std::string> class_names;  // by label; empty: not known
  std::int32_t classes = 0;              // 0: not known
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
  // Returns the samples of the part. One that is there already is left alone.
  virtual std::int64_t write(std::int64_t part) = 0;
  virtual void finish() {}  // after all parts
};

std::unique_ptr<SplitWriter> write_idx(const SplitPlan& plan);
std::unique_ptr<SplitWriter> write_image_folder(const SplitPlan& plan);
std::unique_ptr<SplitWriter> write_tfrecords(const SplitPlan& plan);  // in builds with protobuf

// The samples of one part of several that are as even as can be.
struct SampleRange {
  std::int64_t first = 0, end = 0;
};
SampleRange range_of(std::int64_t part, std::int64_t parts, std::int64_t samples);

}  // namespace trireme::data
