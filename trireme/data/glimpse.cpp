#include "trireme/data/glimpse.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/data/whole_image.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostSamples = 32;

}  // namespace

Glimpse glimpse(const Dataset& dataset) {
  Glimpse seen;
  WholeImages images(dataset);
  Sample sample;
  const std::int64_t size = dataset.size(), count = std::min(size, kMostSamples);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * size / count;  // from all over: neighbours are often of one class
    try {
      dataset.read(index, sample);
      images.measure(index, sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::failed) throw;
      continue;  // whoever needs it names it
    }
    const bool is_first = seen.height == 0;
    seen.same_size = is_first || (seen.same_size && sample.height == seen.height && sample.width == seen.width);
    seen.height = std::max(seen.height, sample.height);
    seen.width = std::max(seen.width, sample.width);
    seen.channels = std::max(seen.channels, sample.channels);
    seen.hash = mix_hash(hash_bytes(sample.bytes, seen.hash), static_cast<std::uint64_t>(sample.label));
  }
  return seen;
}

}  // namespace trireme::data
