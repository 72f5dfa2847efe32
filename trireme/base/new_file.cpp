#include "trireme/base/new_file.hpp"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "trireme/base/write_all.hpp"

namespace trireme {
namespace {

std::string behind_links(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

// Several threads may write files of one name.
std::string aside_of(const std::string& target) {
  static std::atomic<int> count{0};
  return fmt::format("{}.{}-{}.tmp", target, getpid(), count++);
}

}  // namespace

NewFile::NewFile(const std::string& path)
    : path_(path),
      target_(behind_links(path)),
      aside_(aside_of(target_)),
      file_(open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (!file_.is_open()) fail_to("write", errno);
}

NewFile::~NewFile() {
  if (file_.is_open()) unlink(aside_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail_to("write", errno);
  written_ += static_cast<std::int64_t>(bytes.size());
}

void NewFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

// Some file systems tell only at the end that there was no room.
void NewFile::commit() {
  if (fsync(file_.get()) != 0) fail_to("write", errno);
  commit_unsynced();
}

void NewFile::commit_unsynced() {
  if (std::rename(aside_.c_str(), target_.c_str()) != 0) fail_to("replace", errno);
  file_.reset();
}

void NewFile::fail_to(const char* what, int code) const {
  throw WriteError(fmt::format("cannot {} '{}': {}", what, path_, std::strerror(code)));
}

}  // namespace trireme
