#include "trireme/data/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trireme/base/new_file.hpp"

namespace trireme::data {
namespace {

// The system cuts larger transfers anyway.
constexpr std::size_t kLargestTransfer = 1 << 30;

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

InputFile::InputFile(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) fail(ErrorKind::failed, "cannot read {}: {}", path_, std::strerror(errno));
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
    out = out.subspan(got);
    offset += got;
  }
}

std::vector<std::byte> read_file(const std::string& path, std::int64_t most_bytes) {
  const InputFile file(path);
  if (file.size() > most_bytes) {
    bad_input("'{}' has {} bytes; at most {} were expected", path, file.size(), most_bytes);
  }
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw WriteError(fmt::format("cannot make the folder '{}': {}", path, error.message()));
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
