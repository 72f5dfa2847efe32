#include "trireme/data/whole_image.hpp"

#include <limits>

#include "trireme/base/error.hpp"

namespace trireme::data {
namespace {

// The decoder knows the problem but not the place.
template <typename Action>
auto naming(const Dataset& dataset, std::int64_t index, Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", dataset.where(index), error.what());
  }
}

}  // namespace

Window WholeImages::open(std::int64_t index, const Sample& sample) {
  if (!decoder_) decoder_ = std::make_unique<JpegDecoder>();
  return naming(dataset_, index, [&] { return decoder_->open(sample.bytes); });
}

void WholeImages::measure(std::int64_t index, Sample& sample) {
  if (sample.encoding == Encoding::pixels) return;
  const Window whole = open(index, sample);
  sample.height = whole.height;
  sample.width = whole.width;
  sample.channels = decoder_->channels();
}

void WholeImages::decode(std::int64_t index, Sample& sample, int channels) {
  if (sample.encoding == Encoding::jpeg) {
    const Window whole = open(index, sample);
    const Pixels pixels = naming(dataset_, index, [&] {
      return decoder_->decode(whole, std::numeric_limits<int>::max(), channels);  // full size
    });
    const auto* bytes = reinterpret_cast<const std::byte*>(pixels.data);
    copy_.assign(bytes, bytes + pixels.height * pixels.row_bytes);
    sample.height = pixels.height;
    sample.width = pixels.width;
  } else if (sample.channels == 3 && channels == 1) {
    const auto pixels = static_cast<std::size_t>(sample.height) * static_cast<std::size_t>(sample.width);
    copy_.resize(pixels);
    rgb_to_grey(reinterpret_cast<const std::uint8_t*>(sample.bytes.data()), static_cast<std::int64_t>(pixels),
                reinterpret_cast<std::uint8_t*>(copy_.data()));
  } else {
    return;
  }
  sample.bytes.swap(copy_);
  sample.encoding = Encoding::pixels;
  sample.channels = channels;
}

}  // namespace trireme::data
