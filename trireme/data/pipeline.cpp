#include "trireme/data/pipeline.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/data/sample_order.hpp"
#include "trireme/perf/recorder.hpp"

namespace trireme::data {
namespace {

constexpr int kNice = 10;

// Compute goes first: decoding takes the time it leaves. If the system refuses, both are equal.
void lower_priority() { setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice); }

PipelineOptions checked(PipelineOptions options) {
  const auto require = [](bool is_good, const char* what, std::int64_t value) {
    if (!is_good) bad_input("an input pipeline cannot have {} {}", what, value);
  };
  require(options.batch_size > 0, "a batch size of", options.batch_size);
  require(options.ranks > 0, "a number of ranks of", options.ranks);
  require(options.rank >= 0 && options.rank < options.ranks, "rank", options.rank);
  require(options.first >= 0, "a first place of", options.first);
  require(options.threads > 0, "a number of threads of", options.threads);
  require(options.prefetch > 0, "a number of prefetched batches of", options.prefetch);
  return options;
}

// Undecoded samples in memory up to a number of bytes. Early ones stay: every sample is equally likely to be next, so
// no replacement policy is better.
class SampleCache {
 public:
  explicit SampleCache(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if absent. The result stays valid as long as the cache.
  const Sample* find(std::int64_t index) const {
    if (most_bytes_ == 0) return nullptr;
    const std::shared_lock lock(mutex_);
    const auto found = samples_.find(index);
    return found == samples_.end() ? nullptr : found->second.get();
  }

  void keep(std::int64_t index, const Sample& sample) {
    const auto bytes =
        static_cast<std::int64_t>(sizeof(Sample) + sample.bytes.size() + sample.boxes.size() * sizeof(Box));
    if (most_bytes_ == 0) return;
    {
      const std::shared_lock lock(mutex_);
      if (bytes_ + bytes > most_bytes_) return;
    }
    auto copy = std::make_unique<const Sample>(sample);
    const std::unique_lock lock(mutex_);
    if (bytes_ + bytes > most_bytes_) return;
    if (samples_.emplace(index, std::move(copy)).second) bytes_ += bytes;
  }

 private:
  std::int64_t most_bytes_;
  mutable std::shared_mutex mutex_;
  std::int64_t bytes_ = 0;
  std::unordered_map<std::int64_t, std::unique_ptr<const Sample>> samples_;
};

// A sample that could not be used.
struct BadSample {
  std::int64_t place = 0;  // where it, or its replacement, belongs
  std::int64_t index = 0;
  std::string message;
};

// Samples by position in the sequence, ready for the network: read or taken from the cache, and transformed; broken
// ones replaced or left out. Shared by a pipeline's threads.
class SampleSource {
 public:
  // The options must outlive it.
  SampleSource(std::shared_ptr<const Dataset> dataset, const PipelineOptions& options)
      : options_(options),
        dataset_(std::move(dataset)),
        order_(dataset_->size(), options.seed, options.shuffle),
        key_(random_key(options.seed, "preprocessing")),
        cache_(options.cache_bytes) {}

  // Per thread.
  struct Worker {
    explicit Worker(const Preprocessing& preprocessing) : preprocessor(preprocessing) {}
    Preprocessor preprocessor;
    Sample sample;
    std::vector<BadSample> bad;  // found, in order of position
  };

  // Writes the sample at this position, or the next good one of its epoch, and returns its label; zeros and -1 if
  // broken samples are not replaced. Broken samples are retried in every epoch: part of the image may be good, and the
  // result must not depend on history.
  std::int32_t make(std::int64_t place, Worker& worker, std::span<float> out) {
    const std::int64_t samples = order_.samples();
    const std::int64_t epoch_start = order_.epoch(place) * samples;
    const std::uint64_t random_key = to_key(philox(key_, 0, place));
    for (std::int64_t passed = 0; passed < samples; ++passed) {
      const std::int64_t index = order_.at(epoch_start + (place - epoch_start + passed) % samples);
      try {
        return make_one(index, random_key, worker, out);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed) throw;
        worker.bad.push_back({place, index, error.what()});
        if (!options_.replace_bad) {
          std::fill(out.begin(), out.end(), 0.0f);
          return -1;
        }
        if (passed == options_.max_bad_samples) return -1;  // too many in any case: the counter ends the run
      }
    }
    fail(ErrorKind::failed, "none of the {} samples in the data set is usable; the last error: {}", samples,
         worker.bad.back().message);
  }

 private:
  const Sample& read(std::int64_t index, Sample& memory) {
    if (const Sample* kept = cache_.find(index)) return *kept;
    dataset_->read(index, memory);
    cache_.keep(index, memory);
    return memory;
  }

  std::int32_t make_one(std::int64_t index, std::uint64_t random_key, Worker& worker, std::span<float> out) {
    const Sample& sample = read(index, worker.sample);  // readers name the place themselves
    if (options_.classes > 0 && (sample.label < 0 || sample.label >= options_.classes)) {
      bad_input(
          "{}: label {} in the data set, but the network has {} classes: labels must be 0 to {}; raise --num-classes",
          dataset_->where(index), sample.label, options_.classes, options_.classes - 1);
    }
    if (options_.labels_only) return sample.label;
    try {
      worker.preprocessor.run(sample, random_key, out);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", dataset_->where(index), error.what());
    }
    return sample.label;
  }

  const PipelineOptions& options_;
  std::shared_ptr<const Dataset> dataset_;
  SampleOrder order_;
  std::uint64_t key_;
  SampleCache cache_;
};

}  // namespace

// A ring of batches, one of them held by the caller. Threads take positions in sequence order as long as the position's
// batch has memory; the thread that fills a batch's last position notifies the caller.
class Pipeline::Workers {
 public:
  Workers(std::shared_ptr<const Dataset> dataset, const PipelineOptions& options)
      : options_(checked(options)),
        source_(std::move(dataset), options_),
        image_elements_(options.labels_only ? 0
                                            : std::int64_t{options.preprocessing.channels} *
                                                  options.preprocessing.size * options.preprocessing.size) {
    const Preprocessor check(options.preprocessing);
    if (options.recorder != nullptr) {
      label_ = options.recorder->label({.name = "image", .kind = perf::SpanKind::decode});
    }
    for (int i = 0; i < options_.prefetch + 1; ++i) {
      Slot& slot = slots_.emplace_back();
      slot.images = AlignedMemory(options_.batch_size * image_elements_ * static_cast<std::int64_t>(sizeof(float)));
      slot.labels.resize(options_.batch_size);
      slot.missing = options_.batch_size;
    }
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this, track = track(i)] { work(track); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Workers() { stop(); }

  const Batch& next();
  bool is_ready();
  std::int64_t place() const { return first_of(given_); }
  std::vector<std::int64_t> bad_samples() const { return {bad_.begin(), bad_.end()}; }

 private:
  struct Slot {
    AlignedMemory images;
    std::vector<std::int32_t> labels;
    std::int64_t missing = 0;    // samples not there yet
    std::vector<BadSample> bad;  // found on the way
  };

  Slot& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
  std::int64_t global_batch() const { return options_.batch_size * options_.ranks; }
  std::int64_t first_of(std::int64_t batch) const { return position(batch * global_batch()); }
  // Of a sample of this rank's part of the batch.
  std::int64_t place_of(std::int64_t batch, std::int64_t index = 0) const {
    return position(batch * global_batch() + options_.rank * options_.batch_size + index);
  }
  // In the sequence, of the n-th sample that all ranks take.
  std::int64_t position(std::int64_t n) const {
    for (const PositionRange& range : options_.before) {
      if (n < range.end - range.begin) return range.begin + n;
      n -= range.end - range.begin;
    }
    return options_.first + n;
  }
  // The memory of batches before the one in use can be reused.
  bool has_memory(std::int64_t batch) const { return batch < in_use_ + std::ssize(slots_); }

  perf::Track* track(int thread) const;
  void work(perf::Track* track);
  void fill(std::int64_t batch, std::int64_t index, SampleSource::Worker& worker);
  Slot& wait_for(std::int64_t batch);
  void count_bad(Slot& slot);
  void fail_at(std::int64_t sample, std::exception_ptr error);
  void stop();

  const PipelineOptions options_;
  SampleSource source_;
  std::int64_t image_elements_;
  std::vector<Slot> slots_;
  std::int32_t label_ = 0;  // of spans

  std::mutex mutex_;
  std::condition_variable memory_free_, batch_ready_;
  std::int64_t taken_ = 0;   // samples that threads have started, batch after batch
  std::int64_t in_use_ = 0;  // batch that the caller holds or waits for
  bool stopping_ = false;
  std::exception_ptr error_;
  std::int64_t failed_ = 0;  // first sample missing because of the error: earlier ones still come

  // Used by the caller only.
  std::int64_t given_ = 0;  // batches
  Batch batch_;
  std::set<std::int64_t> bad_;  // samples, in the batches given
  std::vector<std::thread> threads_;
};

void Pipeline::Workers::fill(std::int64_t batch, std::int64_t index, SampleSource::Worker& worker) {
  Slot& slot = slot_of(batch);
  const auto bytes = image_elements_ * static_cast<std::int64_t>(sizeof(float));
  const std::span<float> image(static_cast<float*>(slot.images.at(index * bytes)),
                               static_cast<std::size_t>(image_elements_));
  std::int32_t& label = slot.labels[index];
  const std::int64_t place = place_of(batch, index);
  if (options_.end < 0 || place < options_.end) {
    label = source_.make(place, worker, image);
  } else {
    std::fill(image.begin(), image.end(), 0.0f);
    label = -1;
  }
}

perf::Track* Pipeline::Workers::track(int thread) const {
  return options_.recorder == nullptr ? nullptr : &options_.recorder->track(fmt::format("input thread {}", thread));
}

void Pipeline::Workers::work(perf::Track* track) {
  std::int64_t sample = -1;  // none yet
  try {
    lower_priority();
    if (options_.start_thread) options_.start_thread();
    SampleSource::Worker worker(options_.preprocessing);
    std::unique_lock lock(mutex_);
    while (true) {
      memory_free_.wait(lock, [this] { return stopping_ || has_memory(taken_ / options_.batch_size); });
      if (stopping_) return;
      sample = taken_++;
      const std::int64_t batch = sample / options_.batch_size;
      lock.unlock();
      {
        const perf::ScopedSpan span(track, label_, batch + 1);
        fill(batch, sample % options_.batch_size, worker);
      }
      lock.lock();
      Slot& slot = slot_of(batch);
      std::move(worker.bad.begin(), worker.bad.end(), std::back_inserter(slot.bad));
      worker.bad.clear();
      if (--slot.missing == 0) batch_ready_.notify_one();
    }
  } catch (...) {
    fail_at(sample, std::current_exception());
  }
}

void Pipeline::Workers::fail_at(std::int64_t sample, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (sample < 0) sample = taken_;
  if (!error_ || sample < failed_) {
    error_ = std::move(error);
    failed_ = sample;
  }
  stopping_ = true;
  memory_free_.notify_all();
  batch_ready_.notify_one();
}

// Runs on the caller, in order of batches and positions, so that reports and the end do not depend on thread timing.
void Pipeline::Workers::count_bad(Slot& slot) {
  std::stable_sort(slot.bad.begin(), slot.bad.end(),
                   [](const BadSample& a, const BadSample& b) { return a.place < b.place; });
  for (const BadSample& bad : slot.bad) {
    if (!bad_.insert(bad.index).second) continue;
    if (std::cmp_greater(bad_.size(), options_.max_bad_samples)) {
      fail(ErrorKind::failed, "{} (bad record number {}; --max-bad-records {})", bad.message, bad_.size(),
           options_.max_bad_samples);
    }
    if (options_.on_bad_sample) options_.on_bad_sample(bad.message);
  }
  slot.bad.clear();
}

// The caller is done with the previous batch.
Pipeline::Workers::Slot& Pipeline::Workers::wait_for(std::int64_t batch) {
  std::unique_lock lock(mutex_);
  if (batch > 0) slot_of(batch - 1).missing = options_.batch_size;
  in_use_ = batch;
  memory_free_.notify_all();
  Slot& slot = slot_of(batch);
  const auto fails = [&] { return error_ && failed_ < (batch + 1) * options_.batch_size; };
  batch_ready_.wait(lock, [&] { return slot.missing == 0 || fails(); });
  if (fails()) std::rethrow_exception(error_);
  return slot;
}

bool Pipeline::Workers::is_ready() {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr || slot_of(given_).missing == 0;
}

const Batch& Pipeline::Workers::next() {
  const std::int64_t batch = given_;
  Slot& slot = wait_for(batch);
  try {
    count_bad(slot);
  } catch (...) {
    fail_at(batch * options_.batch_size, std::current_exception());
    throw;
  }
  ++given_;
  batch_.first = first_of(batch);
  batch_.images = {static_cast<const float*>(slot.images.at(0)),
                   static_cast<std::size_t>(options_.batch_size * image_elements_)};
  batch_.labels = slot.labels;
  batch_.valid = options_.end < 0 ? options_.batch_size
                                  : std::clamp<std::int64_t>(options_.end - place_of(batch), 0, options_.batch_size);
  return batch_;
}

void Pipeline::Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  memory_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Pipeline::Pipeline(std::shared_ptr<const Dataset> dataset, PipelineOptions options)
    : workers_(std::make_unique<Workers>(std::move(dataset), options)) {}
Pipeline::~Pipeline() = default;

const Batch& Pipeline::next() { return workers_->next(); }
bool Pipeline::is_ready() const { return workers_->is_ready(); }
std::int64_t Pipeline::place() const { return workers_->place(); }
std::vector<std::int64_t> Pipeline::bad_samples() const { return workers_->bad_samples(); }

}  // namespace trireme::data
