#include "trireme/data/jpeg.hpp"

#include "trireme/base/error.hpp"
#include "trireme/features.hpp"

#if TRIREME_WITH_JPEG
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

// Order matters.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace trireme::data {
namespace {

// Larger images count as broken: a header of a few bytes must not demand gigabytes.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
// A progressive file may repeat scans, each costing a pass over the whole image. Real files have about ten.
constexpr int kMostScans = 100;

// libjpeg warns of missing data and continues with gray. Warnings about form only, such as bytes between segments, are
// frequent in old files and harmless.
bool is_damage(int message_code) {
  switch (message_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

// CMYK, or inverted CMYK as Adobe's programs write it.
void cmyk_to_rgb(const std::uint8_t* cmyk, bool is_inverted, std::int64_t pixels, std::uint8_t* rgb) {
  const unsigned flip = is_inverted ? 0 : 255;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const unsigned key = cmyk[4 * i + 3] ^ flip;
    for (int c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<std::uint8_t>((cmyk[4 * i + c] ^ flip) * key / 255);
  }
}

// The smallest sufficient scale of 1/8, 1/4, 1/2 and 1. libjpeg-turbo has vector code for these; scales in between cost
// more than full size.
unsigned eighths_for(const Window& window, int size) {
  for (const unsigned eighths : {1u, 2u, 4u}) {
    const std::int64_t height = std::int64_t{window.height} * eighths / 8;
    const std::int64_t width = std::int64_t{window.width} * eighths / 8;
    if (height >= size && width >= size) return eighths;
  }
  return 8;
}

// libjpeg's error handler must not return: it longjmps to run(), which throws. No frame in between has a destructor.
class Encoder {
 public:
  Encoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) {
      Encoder& self = *static_cast<Encoder*>(common->client_data);
      common->err->format_message(common, self.message_);
      std::longjmp(self.jump_, 1);
    };
    errors_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
  }
  ~Encoder() {
    jpeg_destroy_compress(&info_);
    std::free(data_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  std::span<const std::byte> run(const Sample& pixels, int quality) {
    if (setjmp(jump_) != 0) fail(ErrorKind::failed, "cannot encode a JPEG image: {}", message_);
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &data_, &bytes_);
    info_.image_height = static_cast<JDIMENSION>(pixels.height);
    info_.image_width = static_cast<JDIMENSION>(pixels.width);
    info_.input_components = pixels.channels;
    info_.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    while (info_.next_scanline < info_.image_height) {
      const std::size_t row =
          std::size_t{info_.next_scanline} * static_cast<std::size_t>(pixels.width * pixels.channels);
      // libjpeg does not write to its input, though the type lacks const.
      auto* start = const_cast<JSAMPLE*>(reinterpret_cast<const JSAMPLE*>(pixels.bytes.data() + row));
      jpeg_write_scanlines(&info_, &start, 1);
    }
    jpeg_finish_compress(&info_);
    return {reinterpret_cast<const std::byte*>(data_), bytes_};
  }

 private:
  jpeg_compress_struct info_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = "";
  unsigned char* data_ = nullptr;  // allocated by libjpeg with malloc
  unsigned long bytes_ = 0;
};

}  // namespace

// libjpeg's error handler must not return: it longjmps over libjpeg's frames to guarded(), which throws. No frame in
// between has a destructor.
struct JpegDecoder::State {
  State() {
    info.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr common) { of(common).give_up(); };
    errors.emit_message = [](j_common_ptr common, int level) {
      if (level < 0 && is_damage(common->err->msg_code)) of(common).give_up();
    };
    errors.output_message = [](j_common_ptr) {};
    info.client_data = this;
    guarded([this] { jpeg_create_decompress(&info); });
    progress.progress_monitor = [](j_common_ptr common) {
      if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number > kMostScans) of(common).give_up_scans();
    };
    info.progress = &progress;
  }
  ~State() { jpeg_destroy_decompress(&info); }

  static State& of(j_common_ptr common) { return *static_cast<State*>(common->client_data); }

  [[noreturn]] void give_up() {
    errors.format_message(reinterpret_cast<j_common_ptr>(&info), message);
    std::longjmp(jump, 1);
  }
  [[noreturn]] void give_up_scans() {
    std::snprintf(message, sizeof message, "more than %d scans", kMostScans);
    std::longjmp(jump, 1);
  }

  // The body must not create objects with destructors.
  template <typename Body>
  void guarded(Body body) {
    if (setjmp(jump) != 0) {
      jpeg_abort_decompress(&info);
      fail(ErrorKind::failed, "broken JPEG image: {}", message);
    }
    body();
  }

  void start(const Window& window, int size, int channels);
  void read_rows();
  const std::uint8_t* convert(int channels);

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = "";

  // The decoded part, in pixels of the scaled image.
  JDIMENSION first_row = 0, rows = 0, first_column = 0, columns = 0;
  std::vector<std::uint8_t> pixels, converted;
  std::vector<JSAMPROW> row_starts;
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;

Window JpegDecoder::open(std::span<const std::byte> jpeg) {
  State& state = *state_;
  jpeg_decompress_struct& info = state.info;
  jpeg_abort_decompress(&info);  // drop the rest of the previous image
  state.guarded([&] {
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info, TRUE);
  });
  if (std::int64_t{info.image_width} * info.image_height > kMostPixels) {
    fail(ErrorKind::failed, "JPEG image of {} x {} pixels: at most {} million pixels are supported", info.image_width,
         info.image_height, kMostPixels / 1'000'000);
  }
  return {.height = static_cast<int>(info.image_height), .width = static_cast<int>(info.image_width)};
}

int JpegDecoder::channels() const { return state_->info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3; }

void JpegDecoder::State::start(const Window& window, int size, int channels) {
  const bool is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = is_cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.scale_num = eighths_for(window, size);
  info.scale_denom = 8;
  info.dct_method = JDCT_ISLOW;
  // As in tf_cnn_benchmarks: chroma is not interpolated, which is faster and makes a window equal to the same part of
  // the whole image.
  info.do_fancy_upsampling = FALSE;
  jpeg_start_decompress(&info);
  const auto scaled = [&](int pixel) { return static_cast<JDIMENSION>(std::int64_t{pixel} * info.scale_num / 8); };
  const auto scaled_up = [&](int pixel) {
    return static_cast<JDIMENSION>((std::int64_t{pixel} * info.scale_num + 7) / 8);
  };
  first_row = scaled(window.top);
  rows = std::min(scaled_up(window.top + window.height), info.output_height) - first_row;
  first_column = scaled(window.left);
  columns = std::min(scaled_up(window.left + window.width), info.output_width) - first_column;
  if (columns < info.output_width) jpeg_crop_scanline(&info, &first_column, &columns);
  if (first_row > 0) jpeg_skip_scanlines(&info, first_row);
}

void JpegDecoder::State::read_rows() {
  JDIMENSION done = 0;
  while (done < rows) done += jpeg_read_scanlines(&info, row_starts.data() + done, rows - done);
}

// Conversions that libjpeg lacks.
const std::uint8_t* JpegDecoder::State::convert(int channels) {
  if (info.out_color_space != JCS_CMYK) return pixels.data();
  const auto count = static_cast<std::int64_t>(rows) * columns;
  converted.resize(static_cast<std::size_t>(count) * 3);
  cmyk_to_rgb(pixels.data(), info.saw_Adobe_marker != 0, count, converted.data());
  if (channels == 3) return converted.data();
  pixels.resize(count);
  rgb_to_grey(converted.data(), count, pixels.data());
  return pixels.data();
}

Pixels JpegDecoder::decode(const Window& window, int size, int channels) {
  State& state = *state_;
  state.guarded([&] { state.start(window, size, channels); });
  const auto row_bytes =
      static_cast<std::size_t>(state.columns) * static_cast<std::size_t>(state.info.out_color_components);
  state.pixels.resize(state.rows * row_bytes);
  state.row_starts.resize(state.rows);
  for (std::size_t row = 0; row < state.rows; ++row) state.row_starts[row] = state.pixels.data() + row * row_bytes;
  state.guarded([&] { state.read_rows(); });

  Pixels result;
  result.data = state.convert(channels);
  result.channels = channels;
  result.height = static_cast<int>(state.rows);
  result.width = static_cast<int>(state.columns);
  result.row_bytes = static_cast<std::ptrdiff_t>(result.width) * channels;
  const double scale = state.info.scale_num / 8.0;
  result.top = window.top * scale - state.first_row;
  result.left = window.left * scale - state.first_column;
  result.part_height = window.height * scale;
  result.part_width = window.width * scale;
  jpeg_abort_decompress(&state.info);
  return result;
}

void encode_jpeg(const Sample& pixels, int quality, std::vector<std::byte>& jpeg) {
  const auto possible = [](int side) { return side >= 1 && side <= JPEG_MAX_DIMENSION; };
  if ((pixels.channels != 1 && pixels.channels != 3) || !possible(pixels.height) || !possible(pixels.width)) {
    bad_input("cannot encode {} x {} pixels of {} channels as JPEG: must be 1 or 3 channels, at most {} x {} pixels",
              pixels.width, pixels.height, pixels.channels, JPEG_MAX_DIMENSION, JPEG_MAX_DIMENSION);
  }
  Encoder encoder;
  const auto encoded = encoder.run(pixels, quality);
  jpeg.assign(encoded.begin(), encoded.end());
}

}  // namespace trireme::data

#else

namespace trireme::data {

struct JpegDecoder::State {};

JpegDecoder::JpegDecoder() {
  fail(ErrorKind::unavailable, "this build cannot decode JPEG images: build it with libjpeg-turbo (libjpeg-dev)");
}
JpegDecoder::~JpegDecoder() = default;
Window JpegDecoder::open(std::span<const std::byte>) { return {}; }
int JpegDecoder::channels() const { return 0; }
Pixels JpegDecoder::decode(const Window&, int, int) { return {}; }

void encode_jpeg(const Sample&, int, std::vector<std::byte>&) {
  fail(ErrorKind::unavailable, "this build cannot write JPEG images: build it with libjpeg-turbo (libjpeg-dev)");
}

}  // namespace trireme::data
#endif
