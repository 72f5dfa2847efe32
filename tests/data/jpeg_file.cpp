#include "tests/data/jpeg_file.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

// It needs <cstdio> above it.
// clang-format off
#include <jpeglib.h>
// clang-format on

namespace trireme::testkit {

std::vector<std::byte> encode_jpeg(const JpegOptions& options, const std::vector<std::uint8_t>& pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &buffer, &bytes);
  info.image_height = static_cast<JDIMENSION>(options.height);
  info.image_width = static_cast<JDIMENSION>(options.width);
  info.input_components = options.colours == JpegColours::grey ? 1 : options.colours == JpegColours::rgb ? 3 : 4;
  info.in_color_space = options.colours == JpegColours::grey  ? JCS_GRAYSCALE
                        : options.colours == JpegColours::rgb ? JCS_RGB
                                                              : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (!options.subsampled) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const auto row_bytes = static_cast<std::size_t>(options.width * info.input_components);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * row_bytes);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(buffer);
  std::vector<std::byte> jpeg(first, first + bytes);
  std::free(buffer);
  return jpeg;
}

std::vector<std::uint8_t> picture(int height, int width, int channels, int number) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const double wave = std::sin(0.05 * (x + 2 * c + number)) + std::cos(0.07 * (y - 3 * c + 2 * number));
        pixels.push_back(static_cast<std::uint8_t>(127 + 60 * wave));
      }
    }
  }
  return pixels;
}

std::vector<std::uint8_t> decode_whole(const std::vector<std::byte>& jpeg, int channels) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.do_fancy_upsampling = FALSE;
  jpeg_start_decompress(&info);
  const auto row_bytes = static_cast<std::size_t>(info.output_width) * static_cast<std::size_t>(channels);
  std::vector<std::uint8_t> pixels(info.output_height * row_bytes);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return pixels;
}

}  // namespace trireme::testkit
