#include "trireme/data/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "tests/data/memory_dataset.hpp"

namespace trireme::data {
namespace {

using testkit::jpeg_samples;
using testkit::MemoryDataset;
using testkit::small_samples;

PipelineOptions small_options() {
  PipelineOptions options;
  options.preprocessing = {
      .size = 2, .channels = 1, .crop = Crop::none, .flip = false, .mean = {}, .deviation = {1, 1, 1}};
  return options;
}

// The labels, which are the samples' numbers, that a rank gets from its next batches.
std::vector<std::int32_t> take(Pipeline& pipeline, int batches) {
  std::vector<std::int32_t> samples;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = pipeline.next();
    samples.insert(samples.end(), batch.labels.begin(), batch.labels.begin() + batch.valid);
    for (auto at = static_cast<std::size_t>(batch.valid); at < batch.labels.size(); ++at)
      EXPECT_EQ(batch.labels[at], -1);
  }
  return samples;
}

TEST(Pipeline, EverySampleComesOncePerEpochOverAllRanksAlsoAfterRestarts) {
  constexpr std::int64_t kEpochs = 3;
  for (const int samples : {1, 2, 7, 53, 101}) {
    const auto dataset = std::make_shared<MemoryDataset>(small_samples(samples));
    for (int ranks = 1; ranks <= 7; ++ranks) {
      PipelineOptions options = small_options();
      options.batch_size = 3;
      options.ranks = ranks;
      options.end = kEpochs * samples;
      std::map<std::int32_t, int> times;
      const std::int64_t batches = (options.end + 3 * ranks - 1) / (3 * ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        options.rank = rank;
        options.first = 0;
        // It ends in the middle and goes on where it was, each time after one more batch.
        for (std::int64_t done = 0, run = 1; done < batches; ++run) {
          Pipeline pipeline(dataset, options);
          const std::int64_t count = std::min(run, batches - done);
          for (const std::int32_t sample : take(pipeline, static_cast<int>(count))) ++times[sample];
          done += count;
          options.first = pipeline.place();
          EXPECT_EQ(options.first, done * 3 * ranks);
        }
      }
      ASSERT_EQ(static_cast<int>(times.size()), samples) << ranks << " ranks";
      for (const auto& [sample, count] : times) {
        EXPECT_EQ(count, kEpochs) << "sample " << sample << " of " << samples << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Pipeline, LeftoversComeFirst) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(20));
  PipelineOptions options = small_options();
  options.shuffle = false;
  options.batch_size = 3;
  options.ranks = 2;
  options.before = {{2, 4}, {7, 8}};
  options.first = 10;
  std::vector<std::int32_t> samples[2];
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    Pipeline pipeline(dataset, options);
    samples[options.rank] = take(pipeline, 2);
  }
  EXPECT_EQ(samples[0], (std::vector<std::int32_t>{2, 3, 7, 13, 14, 15}));
  EXPECT_EQ(samples[1], (std::vector<std::int32_t>{10, 11, 12, 16, 17, 18}));
}

TEST(Pipeline, OneEpochIsOverBeforeTheNextBegins) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(10));
  PipelineOptions options = small_options();
  options.batch_size = 4;  // the third reaches into the second epoch
  Pipeline pipeline(dataset, options);
  std::vector<std::int32_t> samples = take(pipeline, 5);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::sort(samples.begin() + 10 * epoch, samples.begin() + 10 * (epoch + 1));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(samples[10 * epoch + i], i);
  }
}

// The ranks' batches, one after the other, are the batch that one rank would have.
TEST(Pipeline, RanksTogetherGiveTheBatchOfOne) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(31));
  PipelineOptions options = small_options();
  options.batch_size = 6;
  Pipeline whole(dataset, options);
  options.batch_size = 2;
  options.ranks = 3;
  std::vector<std::unique_ptr<Pipeline>> parts;
  for (options.rank = 0; options.rank < 3; ++options.rank)
    parts.push_back(std::make_unique<Pipeline>(dataset, options));
  for (int step = 0; step < 12; ++step) {
    std::vector<std::int32_t> together;
    for (const auto& part : parts) {
      const auto samples = take(*part, 1);
      together.insert(together.end(), samples.begin(), samples.end());
    }
    EXPECT_EQ(together, take(whole, 1));
  }
}

struct Collected {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  bool operator==(const Collected&) const = default;
};

Collected collect(Pipeline& pipeline, int batches) {
  Collected all;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = pipeline.next();
    all.images.insert(all.images.end(), batch.images.begin(), batch.images.end());
    all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return all;
}

TEST(Pipeline, BatchesDoNotDependOnThreadsPrefetchingOrMemory) {
  const auto dataset = std::make_shared<MemoryDataset>(jpeg_samples(20));
  PipelineOptions options;
  options.batch_size = 6;
  options.preprocessing.size = 24;
  Pipeline alone(dataset, options);
  const Collected expected = collect(alone, 8);
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    options.prefetch = threads;
    options.cache_bytes = threads == 2 ? 20'000 : threads == 5 ? 1'000'000 : 0;
    Pipeline pipeline(dataset, options);
    EXPECT_TRUE(collect(pipeline, 8) == expected) << threads;
  }
}

TEST(Pipeline, LabelsAloneAreThoseOfTheImages) {
  const auto dataset = std::make_shared<MemoryDataset>(jpeg_samples(20));
  PipelineOptions options;
  options.batch_size = 6;
  options.preprocessing.size = 24;
  Pipeline complete(dataset, options);
  const Collected expected = collect(complete, 8);
  std::vector<Sample> broken = jpeg_samples(20);
  for (Sample& sample : broken) sample.bytes.resize(1);
  options.labels_only = true;
  Pipeline labels(std::make_shared<MemoryDataset>(broken), options);
  const Collected found = collect(labels, 8);
  EXPECT_EQ(found.labels, expected.labels);
  EXPECT_TRUE(found.images.empty());
}

TEST(Pipeline, SaysWhenABatchIsThere) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(50));
  PipelineOptions options = small_options();
  options.prefetch = 1;
  Pipeline pipeline(dataset, options);
  for (int batch = 0; batch < 3; ++batch) {
    for (int waits = 0; waits < 10'000 && !pipeline.is_ready(); ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(pipeline.is_ready());
    pipeline.next();
  }
}

TEST(Pipeline, ABatchStaysUntilTheNextCall) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(50));
  PipelineOptions options = small_options();
  options.batch_size = 5;
  options.shuffle = false;
  options.prefetch = 1;
  Pipeline pipeline(dataset, options);
  for (int step = 0; step < 10; ++step) {
    const Batch& batch = pipeline.next();
    EXPECT_EQ(batch.first, 5 * step);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // time for others to overwrite it
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(batch.labels[i], 5 * step + i);
      EXPECT_EQ(batch.images[4 * i], static_cast<float>(5 * step + i));
    }
  }
}

TEST(Pipeline, AfterTheEndThereIsNothing) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(7));
  PipelineOptions options = small_options();
  options.batch_size = 2;
  options.ranks = 2;
  options.end = 7;
  options.shuffle = false;
  options.rank = 1;
  Pipeline pipeline(dataset, options);
  EXPECT_EQ(take(pipeline, 1), (std::vector<std::int32_t>{2, 3}));
  const Batch& last = pipeline.next();
  EXPECT_EQ(last.valid, 1);
  EXPECT_EQ(last.labels[0], 6);
  EXPECT_EQ(last.images[4], 0.0f);
  EXPECT_EQ(pipeline.next().valid, 0);
  EXPECT_EQ(pipeline.next().valid, 0);
}

TEST(Pipeline, TheCacheSavesReads) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(20));
  PipelineOptions options = small_options();
  options.batch_size = 20;
  options.cache_bytes = 1 << 20;
  options.end = 100;
  Pipeline pipeline(dataset, options);
  take(pipeline, 5);
  EXPECT_EQ(dataset->reads, 20);
}

TEST(Pipeline, BadSamplesAreNamedOnceCountedAndPassedOver) {
  auto samples = jpeg_samples(10);
  samples[4].bytes.resize(10);  // broken
  const auto dataset = std::make_shared<MemoryDataset>(samples);
  dataset->unreadable = {7};
  PipelineOptions options;
  options.batch_size = 10;
  options.shuffle = false;
  options.preprocessing.size = 16;
  options.max_bad_samples = 2;
  options.end = 30;
  options.threads = 2;
  std::vector<std::string> named;
  options.on_bad_sample = [&](const std::string& message) { named.push_back(message); };
  Pipeline pipeline(dataset, options);
  const std::vector<std::int32_t> expected{0, 1, 2, 3, 5, 5, 6, 8, 8, 9};
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(take(pipeline, 1), expected);
  EXPECT_EQ(pipeline.bad_samples().size(), 2U);
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].find("memory, sample 4: broken JPEG image: "), 0u) << named[0];
  EXPECT_EQ(named[1], "memory, sample 7: cannot be read");
}

std::string error_of(Pipeline& pipeline) {
  try {
    pipeline.next();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Where accuracy is counted, another image in the place of a broken one would count twice.
TEST(Pipeline, BadSamplesAreLeftOutWhereTheyAreNotReplaced) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(7));
  dataset->unreadable = {2, 5};
  PipelineOptions options = small_options();
  options.batch_size = 4;
  options.shuffle = false;
  options.end = 7;
  options.max_bad_samples = 2;
  options.replace_bad = false;
  std::vector<std::string> named;
  options.on_bad_sample = [&](const std::string& message) { named.push_back(message); };
  Pipeline pipeline(dataset, options);
  EXPECT_EQ(take(pipeline, 2), (std::vector<std::int32_t>{0, 1, -1, 3, 4, -1, 6}));
  EXPECT_EQ(pipeline.next().valid, 0);
  EXPECT_EQ(named, (std::vector<std::string>{"memory, sample 2: cannot be read", "memory, sample 5: cannot be read"}));
  EXPECT_EQ(pipeline.bad_samples(), (std::vector<std::int64_t>{2, 5}));

  options.max_bad_samples = 1;
  Pipeline strict(dataset, options);
  strict.next();
  EXPECT_THROW(strict.next(), Error);
}

TEST(Pipeline, OneBadSampleTooManyIsAnErrorWhereItIsNeeded) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(10));
  dataset->unreadable = {1, 7};
  PipelineOptions options = small_options();
  options.batch_size = 2;
  options.shuffle = false;
  options.max_bad_samples = 1;
  options.threads = 3;
  options.prefetch = 4;
  Pipeline pipeline(dataset, options);
  EXPECT_EQ(take(pipeline, 3), (std::vector<std::int32_t>{0, 2, 2, 3, 4, 5}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(error_of(pipeline).find("memory, sample 7: cannot be read"), std::string::npos);
    EXPECT_EQ(pipeline.place(), 6);
  }
}

TEST(Pipeline, NothingButBadSamplesIsAnError) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(3));
  dataset->unreadable = {0, 1, 2};
  PipelineOptions options = small_options();
  options.max_bad_samples = 100;
  Pipeline pipeline(dataset, options);
  EXPECT_NE(error_of(pipeline).find("none of the 3 samples in the data set is usable; the last error: memory, sample"),
            std::string::npos);
}

TEST(Pipeline, LabelsBeyondTheNetworksClassesAreAnErrorAtOnce) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(10));
  PipelineOptions options = small_options();
  options.shuffle = false;
  options.classes = 3;
  options.max_bad_samples = 100;
  Pipeline pipeline(dataset, options);
  EXPECT_EQ(take(pipeline, 3), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_NE(error_of(pipeline).find("memory, sample 3: label 3 in the data set, but the network has 3 classes"),
            std::string::npos);
}

TEST(Pipeline, EndsAtAnyMoment) {
  const auto dataset = std::make_shared<MemoryDataset>(jpeg_samples(4));
  PipelineOptions options;
  options.batch_size = 4;
  options.threads = 3;
  options.preprocessing.size = 32;
  for (int batches = 0; batches < 12; ++batches) {
    Pipeline pipeline(dataset, options);
    take(pipeline, batches % 4);
  }
}

TEST(Pipeline, ThreadsAreStartedAndTheirErrorsThrown) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(4));
  PipelineOptions options = small_options();
  options.threads = 2;
  std::atomic<int> started{0};
  options.start_thread = [&] { ++started; };
  {
    Pipeline pipeline(dataset, options);
    pipeline.next();
  }
  EXPECT_EQ(started, 2);
  options.start_thread = [] { fail(ErrorKind::failed, "no processor"); };
  Pipeline pipeline(dataset, options);
  EXPECT_EQ(error_of(pipeline), "no processor");
}

TEST(Pipeline, WhatCannotBeIsRefused) {
  const auto dataset = std::make_shared<MemoryDataset>(small_samples(4));
  for (const auto& change : std::vector<std::function<void(PipelineOptions&)>>{
           [](PipelineOptions& options) { options.batch_size = 0; }, [](PipelineOptions& options) { options.rank = 1; },
           [](PipelineOptions& options) { options.threads = 0; },
           [](PipelineOptions& options) { options.prefetch = 0; },
           [](PipelineOptions& options) { options.preprocessing.channels = 2; },
           [](PipelineOptions& options) { options.first = -1; }}) {
    PipelineOptions options = small_options();
    change(options);
    EXPECT_THROW(Pipeline(dataset, options), Error);
  }
  EXPECT_THROW(Pipeline(std::make_shared<MemoryDataset>(small_samples(0)), small_options()), Error);
}

}  // namespace
}  // namespace trireme::data
