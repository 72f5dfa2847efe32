// A JPEG image: decoded whole, as `data verify` does, and cropped and scaled, as training does.
#include "tests/fuzz/fuzz.hpp"

namespace trireme::fuzz {
namespace {

class OneImage final : public data::Dataset {
 public:
  const data::DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return 1; }
  void read(std::int64_t, data::Sample&) const override {}
  std::string where(std::int64_t) const override { return "image"; }

 private:
  data::DatasetInfo info_;
};

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> images;
  for (const int channels : {1, 3}) {
    const data::DrawnOptions drawn{.samples = 2, .classes = 2, .height = 80, .width = 96};
    const auto dataset = channels == 1 ? data::draw_digits(drawn) : data::draw_shapes(drawn);
    data::Sample sample;
    dataset->read(0, sample);
    std::vector<std::byte> jpeg;
    encode_jpeg(sample, 95, jpeg);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(jpeg.data());
    images.emplace_back(bytes, bytes + jpeg.size());
  }
  return images;
}

}  // namespace trireme::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme;
  static const fuzz::OneImage dataset;
  static data::WholeImages images(dataset);
  static data::Preprocessor preprocessor({.size = 16, .distort_colour = true});
  const auto bytes = std::as_bytes(std::span(data, size));
  data::Sample sample;
  sample.encoding = data::Encoding::jpeg;
  sample.bytes.assign(bytes.begin(), bytes.end());
  std::vector<float> out(3 * 16 * 16);
  try {
    preprocessor.run(sample, size, out);
  } catch (const Error&) {
  }
  try {
    images.decode(0, sample, 3);
  } catch (const Error&) {
  }
  return 0;
}
