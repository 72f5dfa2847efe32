#include "trireme/data/sample_source.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme::data {
namespace {

std::uint64_t key_at(std::uint64_t key, std::int64_t place) {
  const RandomBlock random = philox(key, 0, static_cast<std::uint64_t>(place));
  return (std::uint64_t{random[0]} << 32) | random[1];
}

}  // namespace

const Sample* SampleCache::find(std::int64_t index) const {
  if (most_bytes_ == 0) return nullptr;
  const std::shared_lock lock(mutex_);
  const auto found = samples_.find(index);
  return found == samples_.end() ? nullptr : found->second.get();
}

void SampleCache::keep(std::int64_t index, const Sample& sample) {
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

SampleSource::SampleSource(std::shared_ptr<const Dataset> dataset, const SampleSourceOptions& options)
    : dataset_(std::move(dataset)),
      order_(dataset_->size(), options.seed, options.shuffle),
      key_(random_key(options.seed, "preprocessing")),
      classes_(options.classes),
      max_bad_samples_(options.max_bad_samples),
      replace_bad_(options.replace_bad),
      cache_(options.cache_bytes) {}

const Sample& SampleSource::read(std::int64_t index, Sample& memory) {
  if (const Sample* kept = cache_.find(index)) return *kept;
  dataset_->read(index, memory);
  cache_.keep(index, memory);
  return memory;
}

std::int32_t SampleSource::make_one(std::int64_t index, std::uint64_t random_key, Worker& worker,
                                    std::span<float> out) {
  const Sample& sample = read(index, worker.sample);  // readers name the place themselves
  if (classes_ > 0 && (sample.label < 0 || sample.label >= classes_)) {
    bad_input(
        "{}: label {} in the data set, and the network has {} classes: labels are from 0 to {}; --num-classes "
        "gives it more",
        dataset_->where(index), sample.label, classes_, classes_ - 1);
  }
  try {
    worker.preprocessor.run(sample, random_key, out);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", dataset_->where(index), error.what());
  }
  return sample.label;
}

// A broken sample is tried again in every epoch: part of its image may be good, and what is taken must not depend on
// what has been before.
std::int32_t SampleSource::make(std::int64_t place, Worker& worker, std::span<float> out) {
  const std::int64_t samples = order_.samples();
  const std::int64_t epoch_start = order_.epoch(place) * samples;
  const std::uint64_t random_key = key_at(key_, place);
  for (std::int64_t passed = 0; passed < samples; ++passed) {
    const std::int64_t index = order_.at(epoch_start + (place - epoch_start + passed) % samples);
    try {
      return make_one(index, random_key, worker, out);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::failed) throw;
      worker.bad.push_back({place, index, error.what()});
      if (!replace_bad_) {
        std::fill(out.begin(), out.end(), 0.0f);
        return -1;
      }
      if (passed == max_bad_samples_) return -1;  // too many, whatever comes: whoever counts them ends it
    }
  }
  fail(ErrorKind::failed, "none of the {} samples of the data set is good; the last: {}", samples,
       worker.bad.back().message);
}

}  // namespace trireme::data
