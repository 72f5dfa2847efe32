// Prepares batches ahead of steps: threads read, decode and transform samples straight into a batch, which depends only
// on data, seed and position (sample_order.hpp), not on timing. Made by trainers and benchmarks, one per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/preprocess.hpp"
#include "trireme/data/sample_order.hpp"

namespace trireme::perf {
class Recorder;
}

namespace trireme::data {

struct PipelineOptions {
  std::int64_t batch_size = 1;  // of this rank
  int rank = 0, ranks = 1;
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::int64_t first = 0;                  // position of the first global batch in the sequence, to resume
  std::vector<PositionRange> before = {};  // earlier positions that come first: nobody else has used them
  std::int64_t end = -1;                   // no samples from this position on; -1: endless
  std::int32_t classes = 0;                // labels at or above this are an error; 0: any label
  Preprocessing preprocessing;
  int threads = 1;
  int prefetch = 2;                  // batches that may be ready ahead
  std::int64_t cache_bytes = 0;      // for undecoded samples kept in memory
  std::int64_t max_bad_samples = 0;  // this many are skipped and reported; one more is an error
  bool replace_bad = true;           // false: a broken sample becomes zeros with label -1
  bool labels_only = false;          // batches without images: they are not decoded, so broken ones are not found
  std::function<void(const std::string&)> on_bad_sample = {};  // called by next(), once per sample
  std::function<void()> start_thread = {};  // called first on each thread, for example to pin it; nice is 10
  perf::Recorder* recorder = nullptr;       // gets a span per sample; null: no trace
};

struct Batch {
  std::span<const float> images;  // batch x channels x size x size, or channels last; none with labels_only
  std::span<const std::int32_t> labels;
  std::int64_t valid = 0;  // samples before the end; the rest of the batch is zeros with label -1
  std::int64_t first = 0;  // position of its global batch in the sequence
};

// The global batch at a position is the next ranks x batch_size samples; each rank has a contiguous share, in rank
// order. The next good sample of the epoch replaces a broken one (and comes twice), if replace_bad.
class Pipeline {
 public:
  // Error(bad_input) if the data set is empty or an option is invalid.
  Pipeline(std::shared_ptr<const Dataset> dataset, PipelineOptions options);
  ~Pipeline();  // at any time; waits for samples in progress
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits for the next batch, valid until the next call. If one of its samples is unavailable, throws the error, also
  // in later calls. Past the end, batches are empty.
  const Batch& next();
  bool is_ready() const;  // next() would not wait

  std::int64_t place() const;                     // where a new pipeline would continue this one
  std::vector<std::int64_t> bad_samples() const;  // distinct indices in the batches so far

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace trireme::data
