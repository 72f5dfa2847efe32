#include "trireme/data/survey.hpp"

#include <algorithm>
#include <mutex>

#include "trireme/base/error.hpp"
#include "trireme/data/parallel.hpp"
#include "trireme/data/sample_order.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kSamplesPerPart = 64;

void look_at(const Dataset& dataset, std::int64_t index, bool decode, WholeImages& images, Sample& sample,
             Survey& survey) {
  ++survey.samples;
  try {
    dataset.read(index, sample);
    survey.bytes += std::ssize(sample.bytes);
    if (decode) {
      images.decode(index, sample, 3);
    } else {
      images.measure(index, sample);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::failed) throw;
    survey.problems[index] = error.what();
    return;
  }
  survey.boxes += std::ssize(sample.boxes);
  ++survey.labels[sample.label];
  add_text(survey.texts, sample.label, sample.class_text);
  ++survey.dimensions[{sample.width, sample.height}];
}

void add(Survey& all, Survey& part) {
  all.samples += part.samples;
  all.bytes += part.bytes;
  all.boxes += part.boxes;
  for (const auto& [label, count] : part.labels) all.labels[label] += count;
  for (const auto& [size, count] : part.dimensions) all.dimensions[size] += count;
  for (const auto& [label, text] : part.texts) add_text(all.texts, label, text);
  all.problems.merge(part.problems);
}

}  // namespace

Survey survey(const Dataset& dataset, const SurveyOptions& options) {
  const std::int64_t size = dataset.size();
  const std::int64_t count = options.most_samples > 0 ? std::min(options.most_samples, size) : size;
  if (size == 0) return {};
  // Random, because data are often ordered: every sixth sample may have the same class.
  const SampleOrder order(size, 1, count < size);
  Survey all;
  std::mutex mutex;
  for_each_part((count + kSamplesPerPart - 1) / kSamplesPerPart, options.threads, options.stop, [&](std::int64_t part) {
    Survey found;
    Sample sample;
    WholeImages images(dataset);
    for (std::int64_t i = part * kSamplesPerPart; i < std::min((part + 1) * kSamplesPerPart, count); ++i) {
      look_at(dataset, order.at(i), options.decode, images, sample, found);
    }
    const std::lock_guard lock(mutex);
    add(all, found);
    if (options.on_progress) options.on_progress(all.samples, count);
  });
  return all;
}

}  // namespace trireme::data
