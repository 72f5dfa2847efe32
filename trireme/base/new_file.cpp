#include "trireme/base/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

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

[[noreturn]] void write_failed(const std::string& path, const char* why) {
  throw WriteError(fmt::format("cannot write '{}': {}", path, why));
}

void write_directly(const std::string& text, const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open() || !write_all(file.get(), std::as_bytes(std::span(text)))) {
    write_failed(path, std::strerror(errno));
  }
}

// The stream that a path such as /dev/stdout names: replacing it by a file would cut the stream off.
std::optional<int> stream_of(const std::string& path) {
  if (path == "-") return STDOUT_FILENO;
  struct stat named = {}, open = {};
  if (stat(path.c_str(), &named) != 0) return std::nullopt;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (fstat(stream, &open) == 0 && open.st_dev == named.st_dev && open.st_ino == named.st_ino) return stream;
  }
  return std::nullopt;
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path), target_(behind_links(path)), aside_(aside_of(target_)) {
  if (is_special(target_)) write_failed(path, "it is a device or a pipe, not a file");
  if (std::error_code ignored; std::filesystem::is_directory(target_, ignored)) write_failed(path, "it is a folder");
  file_.reset(open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file_.is_open()) fail_to("write", errno);
}

NewFile::~NewFile() {
  if (file_.is_open()) unlink(aside_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail_to("write", errno);
  written_ += std::ssize(bytes);
}

void NewFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to("write", errno);
    bytes = bytes.subspan(count);
    offset += count;
  }
}

// Some file systems report a full disk only here.
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

void check_can_make(const std::string& path, const std::string& context, const std::string& advice) {
  try {
    const NewFile trial(path);
  } catch (const Error& error) {
    bad_input("{}{}; {}", context, error.what(), advice);
  }
}

// An inaccessible path is reported by whoever opens it.
bool is_special(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return !error && std::filesystem::is_other(status);
}

void write_text(const std::string& text, const std::string& path) {
  if (const auto stream = stream_of(path)) {
    std::fflush(stdout);
    if (!write_all(*stream, std::as_bytes(std::span(text))))
      write_failed(path == "-" ? "stdout" : path, std::strerror(errno));
  } else if (is_special(path)) {
    write_directly(text, path);
  } else {
    NewFile file(path);
    file.write(text);
    file.commit();
  }
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();  // unlike iterators, without exceptions
  return text.str();
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

void append_whole(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  const off_t before = lseek(descriptor, 0, SEEK_END);  // -1 for a pipe
  if (write_all(descriptor, bytes)) return;
  std::string why = std::strerror(errno);
  if (before >= 0 && ftruncate(descriptor, before) != 0) why += ", and the end of the file is now incomplete";
  fail(ErrorKind::failed, "cannot write '{}': {}", path, why);
}

std::string cache_path(const std::string& file) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fmt::format("{}/trireme/{}", cache, file);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fmt::format("{}/.cache/trireme/{}", home, file);
  return "";
}

}  // namespace trireme
