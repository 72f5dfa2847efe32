// Batches ready for a step: threads read, decode and transform samples ahead of the step that needs them, each straight
// into its place in a batch. What a batch holds depends on the data, the seed and the place in the sequence
// (sample_order.hpp) alone, not on threads or on timing. Made by trainers and benchmarks, one per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/preprocess.hpp"

namespace trireme::perf {
class Recorder;
}

namespace trireme::data {

struct PipelineOptions {
  std::int64_t batch_size = 1;  // of this rank
  int rank = 0, ranks = 1;
  std::uint64_t seed = 1;
  bool shuffle = true;
  std::int64_t first = 0;    // place in the sequence of the first global batch: to go on after an interruption
  std::int64_t end = -1;     // no samples from this place on; -1: none
  std::int32_t classes = 0;  // a label that is not below this is an error; 0: any label
  Preprocessing preprocessing;
  int threads = 1;
  int prefetch = 2;                  // batches that may be ready ahead
  std::int64_t cache_bytes = 0;      // of samples, not decoded, kept in memory
  std::int64_t max_bad_samples = 0;  // as many are passed over, each named; one more is an error
  bool replace_bad = true;           // false: the place of a broken sample holds zeros and the label -1
  // Called by next() with what was wrong, once for each sample.
  std::function<void(const std::string&)> on_bad_sample = {};
  // Called first on each thread, for instance to choose its processors. Threads have a low priority (nice 10).
  std::function<void()> start_thread = {};
  perf::Recorder* recorder = nullptr;  // gets a span for each sample; none: nobody traces
};

struct Batch {
  std::span<const float> images;  // batch x channels x size x size, or with the channels last, as asked for
  std::span<const std::int32_t> labels;
  std::int64_t valid = 0;  // places before the end; the rest of the batch is zero, and its labels are -1
  std::int64_t first = 0;  // place in the sequence of the global batch that this is a part of
};

// The global batch at a place is what lies from there on in the sequence, ranks x batch_size samples; each rank has its
// share of it in one piece, in the order of ranks. In the place of a sample that is broken comes the next good one of
// its epoch, so that one comes twice and no other is moved; where accuracy is counted it is left out instead.
class Pipeline {
 public:
  // Error(bad_input) where the data set is empty or an option cannot be.
  Pipeline(std::shared_ptr<const Dataset> dataset, PipelineOptions options);
  ~Pipeline();  // at any moment; waits for the samples under way
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits for the next batch, which stays valid until the next call. Where a sample of it cannot be had, the error is
  // thrown, and again in later calls. After the end, batches without samples come.
  const Batch& next();

  // Where a pipeline would have to begin to give what comes next here.
  std::int64_t place() const;
  std::vector<std::int64_t> bad_samples() const;  // different ones, in the batches so far, by their numbers

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace trireme::data
