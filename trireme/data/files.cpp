#include "trireme/data/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace trireme::data {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
// Longer parts of a reader's or writer's wish are cut by the system anyway.
constexpr std::size_t kLargestTransfer = 1 << 30;

void write_all(int file, std::int64_t offset, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), std::min(bytes.size(), kLargestTransfer), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(ErrorKind::failed, "cannot write '{}': {}", path, std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

}  // namespace

InputFile::InputFile(std::string path, ErrorKind missing)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (!file_.is_open() || fstat(file_.get(), &status) != 0) {
    fail(missing, "cannot open '{}': {}", path_, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) fail(missing, "'{}' is not a file", path_);
  size_ = status.st_size;
}

std::string InputFile::name() const { return std::filesystem::path(path_).filename(); }

void InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(file_.get(), out.data(), std::min(out.size(), kLargestTransfer), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::failed, "cannot read {}, byte {}: {}", path_, offset, std::strerror(errno));
    if (got == 0)
      fail(ErrorKind::failed, "{}, byte {}: the file ends here, {} bytes too early", path_, offset, out.size());
    out = out.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

std::vector<std::byte> read_file(const std::string& path, std::int64_t most_bytes) {
  const InputFile file(path);
  if (file.size() > most_bytes) {
    bad_input("'{}' has {} bytes; at most {} were expected", path, file.size(), most_bytes);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      aside_(path_ + ".part"),
      file_(open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!file_.is_open()) fail(ErrorKind::failed, "cannot write '{}': {}", aside_, std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (file_.is_open()) unlink(aside_.c_str());
}

void OutputFile::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush() {
  write_all(file_.get(), size_, buffer_, path_);
  size_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
}

void OutputFile::write(std::int64_t offset, std::span<const std::byte> bytes) {
  write_all(file_.get(), offset, bytes, path_);
}

void OutputFile::commit() {
  flush();
  if (fdatasync(file_.get()) != 0) fail(ErrorKind::failed, "cannot write '{}': {}", path_, std::strerror(errno));
  commit_unsynced();
}

void OutputFile::commit_unsynced() {
  flush();
  if (std::rename(aside_.c_str(), path_.c_str()) != 0) {
    fail(ErrorKind::failed, "cannot write '{}': {}", path_, std::strerror(errno));
  }
  file_.reset();
}

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(ErrorKind::failed, "cannot make the folder '{}': {}", path, error.message());
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.front() != '.') names.push_back(name);
  }
  if (error) bad_input("cannot read the folder '{}': {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string contents_of(const std::string& folder) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names = list_folder(folder);
  if (names.empty()) return "nothing";
  const std::size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  return more == 0 ? fmt::format("{}", fmt::join(names, ", "))
                   : fmt::format("{} and {} more", fmt::join(names, ", "), more);
}

}  // namespace trireme::data
