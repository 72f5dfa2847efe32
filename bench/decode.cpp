// How fast one thread turns JPEG images of ImageNet's size into what a network takes, and what the parts of that cost,
// beside plain libjpeg-turbo, interleaved so that all see the same machine.
//   build/release/bench/bench_decode [ROUNDS [IMAGES [DATA_DIR]]]
// Images are drawn here, 500 x 375 pixels at quality 90, colours at half the resolution. Figures are medians over
// rounds; ratios are of the two in the same round. Processor time is counted, not time on the clock. With a data set,
// the whole input pipeline over it follows, with one thread: reading, decoding and all else.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "trireme/base/random.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/jpeg.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/data/preprocess.hpp"
#include "trireme/perf/statistics.hpp"

// It needs <cstdio> above it.
// clang-format off
#include <jpeglib.h>
// clang-format on

namespace {

using namespace trireme;

constexpr int kHeight = 375, kWidth = 500, kSize = 224;

// Waves of several lengths and some noise: about 100 kB, as ImageNet's photographs.
data::Sample picture(std::uint64_t number) {
  data::Sample sample;
  sample.height = kHeight;
  sample.width = kWidth;
  sample.channels = 3;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const RandomBlock noise = philox(number, 0, static_cast<std::uint64_t>(y * kWidth + x));
      for (int c = 0; c < 3; ++c) {
        const double phase = static_cast<double>(number) + c;
        const double wave = std::sin(0.02 * x + phase) + std::cos(0.03 * y + phase) + 0.5 * std::sin(0.3 * (x + y));
        const double value = 127 + 40 * wave + 48 * (static_cast<double>(to_unit(noise[c])) - 0.5);
        sample.bytes.push_back(static_cast<std::byte>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return sample;
}

// One decompressor for all images, as many rows at once as it gives.
class PlainDecoder {
 public:
  explicit PlainDecoder(bool fancy) : fancy_(fancy) {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~PlainDecoder() { jpeg_destroy_decompress(&info_); }
  PlainDecoder(const PlainDecoder&) = delete;
  PlainDecoder& operator=(const PlainDecoder&) = delete;

  void decode(const std::vector<std::byte>& jpeg) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.do_fancy_upsampling = fancy_ ? TRUE : FALSE;
    jpeg_start_decompress(&info_);
    const std::size_t row_bytes = std::size_t{info_.output_width} * 3;
    pixels_.resize(info_.output_height * row_bytes);
    rows_.resize(info_.output_height);
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row] = pixels_.data() + row * row_bytes;
    while (info_.output_scanline < info_.output_height) {
      jpeg_read_scanlines(&info_, rows_.data() + info_.output_scanline, info_.output_height - info_.output_scanline);
    }
    jpeg_finish_decompress(&info_);
  }

 private:
  bool fancy_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::vector<std::uint8_t> pixels_;
  std::vector<JSAMPROW> rows_;
};

double processor_seconds(clockid_t of) {
  timespec time{};
  clock_gettime(of, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Contestant {
  std::string name;
  std::function<void(const data::Sample& sample, std::uint64_t key)> run;
  std::vector<double> seconds = {};  // per image, [round]
};

void print(const std::vector<Contestant>& contestants) {
  TextTable table({{"", Align::left},
                   {"ms per image", Align::right},
                   {"images/s", Align::right},
                   {"against the first", Align::right}});
  for (const Contestant& contestant : contestants) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < contestant.seconds.size(); ++round)
      ratios.push_back(contestant.seconds[round] / contestants.front().seconds[round]);
    const double seconds = perf::summarize(contestant.seconds).median;
    table.add_row({contestant.name, fmt::format("{:.3f}", 1e3 * seconds), fmt::format("{:.0f}", 1 / seconds),
                   fmt::format("{:.3f}", perf::summarize(ratios).median)});
  }
  fmt::print("{}", table.text());
}

void compare(int rounds, int images) {
  std::vector<data::Sample> samples(images);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].encoding = data::Encoding::jpeg;
    data::encode_jpeg(picture(i), 90, samples[i].bytes);
  }
  fmt::print("{} images of {} x {}, the first has {} bytes\n", images, kWidth, kHeight, samples[0].bytes.size());
  PlainDecoder plain(false), fancy(true);
  data::JpegDecoder decoder;
  data::Preprocessor random(data::Preprocessing{.size = kSize}),
      centre(data::Preprocessing{.size = kSize, .crop = data::Crop::centre, .flip = false}),
      distorted(data::Preprocessing{.size = kSize, .distort_colour = true});
  std::vector<float> out(3 * kSize * kSize);
  std::vector<Contestant> contestants;
  contestants.push_back({"libjpeg-turbo, whole image", [&](const auto& sample, auto) { plain.decode(sample.bytes); }});
  contestants.push_back(
      {"the same, colours interpolated (its default)", [&](const auto& sample, auto) { fancy.decode(sample.bytes); }});
  contestants.push_back(
      {"ours, whole image", [&](const auto& sample, auto) { decoder.decode(decoder.open(sample.bytes), kHeight, 3); }});
  contestants.push_back({"ours, random crop to 224 x 224 as in training",
                         [&](const auto& sample, auto key) { random.run(sample, key, out); }});
  contestants.push_back(
      {"the same, distorted colours", [&](const auto& sample, auto key) { distorted.run(sample, key, out); }});
  contestants.push_back({"ours, centre crop to 224 x 224 as in evaluation",
                         [&](const auto& sample, auto key) { centre.run(sample, key, out); }});
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (Contestant& contestant : contestants) {
      const double start = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
      for (std::size_t i = 0; i < samples.size(); ++i) {
        contestant.run(samples[i], static_cast<std::uint64_t>(round + 1) * samples.size() + i);
      }
      if (round >= 0) contestant.seconds.push_back((processor_seconds(CLOCK_THREAD_CPUTIME_ID) - start) / images);
    }
  }
  print(contestants);
}

// Images per second of processor time, and of time on the clock, which is longer where others use the processors.
void feed(int rounds, const std::string& folder) {
  data::PipelineOptions options;
  options.batch_size = 16;
  const auto dataset = data::open_dataset(folder, {});
  data::Pipeline pipeline(dataset, options);
  pipeline.next();
  const auto clock_start = std::chrono::steady_clock::now();
  const double start = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const auto images = static_cast<double>(4 * rounds * options.batch_size);
  for (int batch = 0; batch < 4 * rounds; ++batch) pipeline.next();
  const double busy = processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - clock_start).count();
  fmt::print(
      "pipeline over {} ({} images of {}), one thread: {:.0f} images/s of processor time ({:.2f} ms each), {:.0f} on "
      "the clock\n",
      folder, dataset->size(), dataset->info().format, images / busy, 1e3 * busy / images, images / passed);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  compare(rounds, argc > 2 ? std::max(1, std::atoi(argv[2])) : 20);
  if (argc > 3) feed(rounds, argv[3]);
  return 0;
}
