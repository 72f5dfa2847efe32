// A data set in memory whose labels are the numbers of its samples, for tests of what reads data sets.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <set>
#include <vector>

#include "tests/data/jpeg_file.hpp"
#include "trireme/base/error.hpp"
#include "trireme/data/dataset.hpp"

namespace trireme::testkit {

class MemoryDataset : public data::Dataset {
 public:
  explicit MemoryDataset(std::vector<data::Sample> samples) : samples_(std::move(samples)) {}

  const data::DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(samples_); }
  void read(std::int64_t index, data::Sample& sample) const override {
    ++reads;
    if (unreadable.contains(index)) fail(ErrorKind::failed, "{}: cannot be read", where(index));
    sample = samples_[index];
  }
  std::string where(std::int64_t index) const override { return fmt::format("memory, sample {}", index); }

  std::set<std::int64_t> unreadable;
  mutable std::atomic<int> reads{0};

 private:
  data::DatasetInfo info_;
  std::vector<data::Sample> samples_;
};

// Grey images of 2 x 2 pixels.
inline std::vector<data::Sample> small_samples(int count) {
  std::vector<data::Sample> samples;
  for (int i = 0; i < count; ++i) {
    data::Sample& sample = samples.emplace_back();
    sample.bytes.assign(4, static_cast<std::byte>(i));
    sample.height = sample.width = 2;
    sample.channels = 1;
    sample.label = i;
  }
  return samples;
}

inline std::vector<data::Sample> jpeg_samples(int count) {
  std::vector<data::Sample> samples;
  for (int i = 0; i < count; ++i) {
    const int height = 40 + i % 7, width = 50 - i % 5;
    data::Sample& sample = samples.emplace_back();
    sample.encoding = data::Encoding::jpeg;
    sample.bytes = encode_jpeg({.height = height, .width = width}, picture(height, width, 3, 10 * i));
    sample.label = i;
  }
  return samples;
}

}  // namespace trireme::testkit
