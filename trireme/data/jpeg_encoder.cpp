#include "trireme/data/jpeg_encoder.hpp"

#include "trireme/base/error.hpp"

#ifdef TRIREME_WITH_JPEG
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <span>

// It needs what is above it.
// clang-format off
#include <jpeglib.h>
// clang-format on

namespace trireme::data {
namespace {

// libjpeg reports an error by a function that must not return: it jumps back to run(), which throws. No frame with a
// destructor is in between.
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
      // libjpeg does not write to what it encodes, though its type does not say so.
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
  unsigned char* data_ = nullptr;  // libjpeg allocates it by malloc
  unsigned long bytes_ = 0;
};

}  // namespace

void encode_jpeg(const Sample& pixels, int quality, std::vector<std::byte>& jpeg) {
  const auto possible = [](int side) { return side >= 1 && side <= JPEG_MAX_DIMENSION; };
  if ((pixels.channels != 1 && pixels.channels != 3) || !possible(pixels.height) || !possible(pixels.width)) {
    bad_input("no JPEG image can be made of {} x {} pixels of {} channels: 1 or 3 channels, up to {} x {}",
              pixels.width, pixels.height, pixels.channels, JPEG_MAX_DIMENSION, JPEG_MAX_DIMENSION);
  }
  Encoder encoder;
  const auto encoded = encoder.run(pixels, quality);
  jpeg.assign(encoded.begin(), encoded.end());
}

}  // namespace trireme::data

#else

namespace trireme::data {

void encode_jpeg(const Sample&, int, std::vector<std::byte>&) {
  fail(ErrorKind::unavailable, "this build cannot write JPEG images: build it with libjpeg-turbo (libjpeg-dev)");
}

}  // namespace trireme::data
#endif
