#include "trireme/data/gzip.hpp"

#include "trireme/base/error.hpp"
#include "trireme/data/files.hpp"

#ifdef TRIREME_WITH_ZLIB

#include <zlib.h>

#include <algorithm>

namespace trireme::data {
namespace {

// No stream of deflate holds more bytes per byte.
constexpr std::int64_t kLargestRatio = 1032;
constexpr std::size_t kChunkBytes = 1 << 18;

// A stream from a file, inflated a piece at a time.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : file_(path), chunk_(kChunkBytes) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail(ErrorKind::failed, "zlib could not be started");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  const InputFile& file() const { return file_; }

  // Returns the bytes it got: fewer at the end of the stream.
  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      if (stream_.avail_in == 0) fill();
      const std::size_t wanted = std::min(out.size() - done, kChunkBytes);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(wanted);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += wanted - stream_.avail_out;
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && !ended_) {
        bad_input("{}, byte {}: not a gzip stream, or a broken one{}{}", file_.path(), offset_ - stream_.avail_in,
                  stream_.msg == nullptr ? "" : ": ", stream_.msg == nullptr ? "" : stream_.msg);
      }
    }
    return done;
  }

 private:
  void fill() {
    const std::int64_t bytes = std::min<std::int64_t>(file_.size() - offset_, kChunkBytes);
    if (bytes <= 0) bad_input("{}, byte {}: the gzip stream is cut off", file_.path(), offset_);
    file_.read(offset_, std::span(chunk_).first(static_cast<std::size_t>(bytes)));
    offset_ += bytes;
    stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
    stream_.avail_in = static_cast<uInt>(bytes);
  }

  InputFile file_;
  std::vector<std::byte> chunk_;
  std::int64_t offset_ = 0;
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

std::vector<std::byte> gunzip_head(const std::string& path, std::size_t bytes) {
  std::vector<std::byte> head(bytes);
  head.resize(Inflater(path).read(head));
  return head;
}

std::vector<std::byte> gunzip(const std::string& path, std::int64_t bytes) {
  Inflater inflater(path);
  const std::int64_t compressed = inflater.file().size();
  if (bytes / kLargestRatio > compressed) {
    bad_input("{}: {} bytes cannot be in a gzip file of {} bytes", path, bytes, compressed);
  }
  std::vector<std::byte> all(static_cast<std::size_t>(bytes));
  const std::size_t got = inflater.read(all);
  if (got < all.size()) bad_input("{}: holds {} bytes; {} were expected", path, got, bytes);
  std::byte more{};
  if (inflater.read({&more, 1}) > 0) bad_input("{}: holds more than the {} bytes that were expected", path, bytes);
  return all;
}

}  // namespace trireme::data

#else

namespace trireme::data {
namespace {

[[noreturn]] void no_zlib(const std::string& path) {
  fail(ErrorKind::unavailable,
       "'{}' is compressed, and this build has no zlib: uncompress it with gunzip, or build with the package "
       "zlib1g-dev",
       path);
}

}  // namespace

std::vector<std::byte> gunzip_head(const std::string& path, std::size_t) { no_zlib(path); }
std::vector<std::byte> gunzip(const std::string& path, std::int64_t) { no_zlib(path); }

}  // namespace trireme::data

#endif
