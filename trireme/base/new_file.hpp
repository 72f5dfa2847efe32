// Atomic file writes: a NewFile is written aside and renamed when complete; until then an existing file stays
// unchanged, even if the process is killed. For output that may go to stdout or a pipe, use write_text().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme {

// The system refuses to write. A retry may succeed once there is space or permission.
class WriteError : public Error {
 public:
  explicit WriteError(const std::string& message) : Error(ErrorKind::failed, message) {}
};

class NewFile {
 public:
  // Follows a link and replaces the file behind it. Refuses anything but regular files: renaming over a device would
  // destroy it. WriteError names the path.
  explicit NewFile(const std::string& path);
  ~NewFile();  // removes the file if not committed
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  std::int64_t written() const { return written_; }
  // Threads may write concurrently to different offsets. Do not mix with write().
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  void commit();  // syncs to disk, then renames
  // Renames without syncing, for many small files that the caller syncs together.
  void commit_unsynced();

  // The temporary path, ending in ".tmp", for finding leftovers of killed processes.
  const std::string& aside() const { return aside_; }

 private:
  [[noreturn]] void fail_to(const char* what, int code) const;

  std::string path_, target_, aside_;
  UniqueFd file_;
  std::int64_t written_ = 0;
};

// Error(bad_input), "<context>cannot write '<path>': ...; <advice>", if no NewFile can be made there. Leaves nothing
// behind. The only test that covers permissions, quotas and read-only file systems alike.
void check_can_make(const std::string& path, const std::string& context, const std::string& advice);

// A device or pipe such as /dev/null or /dev/stdout: written to directly or not at all.
bool is_special(const std::string& path);

// "-" is stdout; devices and pipes get the text; a file is replaced atomically.
void write_text(const std::string& text, const std::string& path);
std::string read_text(const std::string& path);  // empty if it cannot be read

// Writes everything. False on error; errno says why, and a part may have been written.
bool write_all(int descriptor, std::span<const std::byte> bytes);
// Appends everything or nothing: on a full disk no partial data stays in the file (a pipe cannot be undone).
// Error(failed) names the path. For files that are read while they grow.
void append_whole(int descriptor, std::span<const std::byte> bytes, const std::string& path);

// A user's cache file, such as kernel timings, below XDG_CACHE_HOME or ~/.cache (empty without either).
std::string cache_path(const std::string& file);

}  // namespace trireme
