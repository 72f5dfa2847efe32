#include "trireme/data/gzip.hpp"

#include "trireme/base/error.hpp"
#include "trireme/features.hpp"

namespace trireme::data {

bool looks_compressed(std::span<const std::byte> head) {
  if (head.size() < 2) return false;
  const int first = static_cast<int>(head[0]), second = static_cast<int>(head[1]);
  const bool is_zlib = (first & 0x0f) == 8 && (first >> 4) <= 7 && (256 * first + second) % 31 == 0;
  return (first == 0x1f && second == 0x8b) || is_zlib;
}

}  // namespace trireme::data

#if TRIREME_WITH_ZLIB

#include <fcntl.h>
#include <sys/statvfs.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trireme/base/new_file.hpp"
#include "trireme/base/units.hpp"

namespace trireme::data {
namespace {

// Maximum compression ratio of deflate.
constexpr std::int64_t kLargestRatio = 1032;
constexpr std::size_t kChunkBytes = 1 << 18;

// Inflates a stream from a file piece by piece.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : file_(path), chunk_(kChunkBytes) {
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) fail(ErrorKind::failed, "zlib could not be started");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  const InputFile& file() const { return file_; }
  std::size_t got() const { return got_; }  // from the last read(), also if that failed

  // Returns the number of bytes: fewer at the end of the stream.
  std::size_t read(std::span<std::byte> out) {
    std::size_t& done = got_ = 0;
    while (done < out.size() && !ended_) {
      if (stream_.avail_in == 0) fill();
      const std::size_t wanted = std::min(out.size() - done, kChunkBytes);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(wanted);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += wanted - stream_.avail_out;
      if (result == Z_STREAM_END) {
        ended_ = !begins_another();
      } else if (result != Z_OK) {
        bad_input("{}, byte {}: not a gzip stream, or a broken one{}{}", file_.path(), offset_ - stream_.avail_in,
                  stream_.msg == nullptr ? "" : ": ", stream_.msg == nullptr ? "" : stream_.msg);
      }
    }
    return done;
  }

 private:
  // Concatenated gzip files form one gzip file. Other trailing bytes are ignored, as gzip does.
  bool begins_another() {
    if (stream_.avail_in == 0 && offset_ == file_.size()) return false;
    if (stream_.avail_in == 0) fill();
    return *stream_.next_in == 0x1f && inflateReset(&stream_) == Z_OK;
  }

  void fill() {
    const std::int64_t bytes = std::min<std::int64_t>(file_.size() - offset_, kChunkBytes);
    if (bytes <= 0) bad_input("{}, byte {}: the gzip stream is cut off", file_.path(), offset_);
    file_.read(offset_, std::span(chunk_).first(bytes));
    offset_ += bytes;
    stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
    stream_.avail_in = static_cast<uInt>(bytes);
  }

  InputFile file_;
  std::vector<std::byte> chunk_;
  std::int64_t offset_ = 0;
  z_stream stream_{};
  std::size_t got_ = 0;
  bool ended_ = false;
};

// Left for others.
constexpr std::uint64_t kRoomBytes = 256 << 20;

std::string temporary_folder() {
  const char* given = std::getenv("TMPDIR");
  if (given != nullptr && *given != '\0') return given;
  return std::filesystem::is_directory("/var/tmp") ? "/var/tmp" : "/tmp";
}

// An unnamed file.
UniqueFd open_nameless(const std::string& folder) {
  UniqueFd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_open()) return file;
  std::string path = folder + "/trireme-XXXXXX";  // not every file system supports O_TMPFILE
  file.reset(mkostemp(path.data(), O_CLOEXEC));
  if (file.is_open()) unlink(path.c_str());
  return file;
}

[[noreturn]] void no_room(const std::string& path, const std::string& folder, const std::string& why) {
  bad_input(
      "'{}' is compressed; to be read in any order it must first be uncompressed into the folder {}: {}; set TMPDIR to "
      "a folder with more space, or uncompress it once with gunzip",
      path, folder, why);
}

void write_with_room(const UniqueFd& file, std::span<const std::byte> bytes, const std::string& path,
                     const std::string& folder) {
  struct statvfs system {};
  if (fstatvfs(file.get(), &system) == 0) {
    const std::uint64_t left = static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize;
    if (left < kRoomBytes + bytes.size()) {
      no_room(path, folder, fmt::format("only {} is free there", format_bytes(static_cast<double>(left))));
    }
  }
  if (!write_all(file.get(), bytes)) no_room(path, folder, std::strerror(errno));
}

}  // namespace

Unpacked unpack(const std::string& path) {
  const std::string folder = temporary_folder();
  UniqueFd file = open_nameless(folder);
  if (!file.is_open()) no_room(path, folder, std::strerror(errno));
  std::optional<std::string> problem;
  Inflater inflater(path);
  std::vector<std::byte> piece(kChunkBytes);
  for (std::size_t got = piece.size(); got == piece.size() && !problem;) {
    try {
      got = inflater.read(piece);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      problem = error.what();
      got = inflater.got();
    }
    write_with_room(file, std::span(piece).first(got), path, folder);
  }
  return {InputFile(path + " (uncompressed)", std::move(file)), std::move(problem)};
}

std::vector<std::byte> gunzip_head(const std::string& path, std::size_t bytes) {
  std::vector<std::byte> head(bytes);
  head.resize(Inflater(path).read(head));
  return head;
}

std::vector<std::byte> gunzip(const std::string& path, std::int64_t bytes) {
  Inflater inflater(path);
  const std::int64_t compressed = inflater.file().size();
  if (bytes / kLargestRatio > compressed) {
    bad_input("{}: {} bytes cannot come from a gzip file of {} bytes", path, bytes, compressed);
  }
  std::vector<std::byte> all(bytes);
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
       "'{}' is compressed, but this build has no zlib: uncompress it with gunzip, or install zlib1g-dev and build "
       "again",
       path);
}

}  // namespace

std::vector<std::byte> gunzip_head(const std::string& path, std::size_t) { no_zlib(path); }
std::vector<std::byte> gunzip(const std::string& path, std::int64_t) { no_zlib(path); }
Unpacked unpack(const std::string& path) { no_zlib(path); }

}  // namespace trireme::data

#endif
