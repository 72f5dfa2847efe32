// Samples by their place in the sequence, ready for the network: read, or taken from memory, and transformed; broken
// ones replaced or left out. Shared by the threads of a pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/preprocess.hpp"
#include "trireme/data/sample_order.hpp"

namespace trireme::data {

// Samples as they were read, in memory up to a number of bytes. What came first stays: every sample is equally likely
// to be the next, so no choice is better than another.
class SampleCache {
 public:
  explicit SampleCache(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  // None where it is not there. What is given back stays as long as the cache.
  const Sample* find(std::int64_t index) const;
  void keep(std::int64_t index, const Sample& sample);

 private:
  std::int64_t most_bytes_;
  mutable std::shared_mutex mutex_;
  std::int64_t bytes_ = 0;
  std::unordered_map<std::int64_t, std::unique_ptr<const Sample>> samples_;
};

// One that could not be used.
struct BadSample {
  std::int64_t place = 0;  // where it, or one after it, should have been
  std::int64_t index = 0;
  std::string message;
};

struct SampleSourceOptions {
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::int32_t classes = 0;
  std::int64_t cache_bytes = 0;
  std::int64_t max_bad_samples = 0;  // more of them than this for one place are an error
  bool replace_bad = true;           // by the next good one; false: their places stay empty
};

class SampleSource {
 public:
  SampleSource(std::shared_ptr<const Dataset> dataset, const SampleSourceOptions& options);

  // What a thread keeps for itself.
  struct Worker {
    explicit Worker(const Preprocessing& preprocessing) : preprocessor(preprocessing) {}
    Preprocessor preprocessor;
    Sample sample;
    std::vector<BadSample> bad;  // found, in the order of their places
  };

  // Writes the sample at this place, or the next good one of its epoch, and returns its label; zeros and -1 where a
  // broken one is not replaced.
  std::int32_t make(std::int64_t place, Worker& worker, std::span<float> out);

 private:
  const Sample& read(std::int64_t index, Sample& memory);
  std::int32_t make_one(std::int64_t index, std::uint64_t random_key, Worker& worker, std::span<float> out);

  std::shared_ptr<const Dataset> dataset_;
  SampleOrder order_;
  std::uint64_t key_;
  std::int32_t classes_;
  std::int64_t max_bad_samples_;
  bool replace_bad_;
  SampleCache cache_;
};

}  // namespace trireme::data
