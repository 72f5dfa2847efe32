// Files that are written: a NewFile appears under its name only when it is complete. It is written aside, then renamed;
// until then whatever had the name stays as it was, also when the process is killed. Used for everything that must not
// be lost half-written. What people may also want on stdout or in a pipe is for write_text().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme {

// The system refuses to write. Once there is room, or leave, the same may succeed.
class WriteError : public Error {
 public:
  explicit WriteError(const std::string& message) : Error(ErrorKind::failed, message) {}
};

class NewFile {
 public:
  // A name that is a link stays one: the file behind it is replaced. What is not a regular file is not: to rename over
  // a device would destroy it. WriteError names the path.
  explicit NewFile(const std::string& path);
  ~NewFile();  // what was not committed is removed
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  std::int64_t written() const { return written_; }
  // Threads may write at the same time, to different places. Not to be mixed with the others.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  // On the disk, then under its name.
  void commit();
  // Under its name; on the disk when the system likes. For many small files, which the caller syncs together.
  void commit_unsynced();

  // Where it is written, for whoever looks for what was left behind by a killed process: ends in ".tmp".
  const std::string& aside() const { return aside_; }

 private:
  [[noreturn]] void fail_to(const char* what, int code) const;

  std::string path_, target_, aside_;
  UniqueFd file_;
  std::int64_t written_ = 0;
};

// A device or a pipe, as /dev/null and /dev/stdout are: written to directly or not at all.
bool is_special(const std::string& path);

// To where the user says: "-" is stdout, a device or a pipe gets the text, and a file appears whole or not at all.
void write_text(const std::string& text, const std::string& path);
// All of a file; empty if it cannot be read.
std::string read_text(const std::string& path);

// To a descriptor until all is written. False if the system refuses; errno says why, and a part may have been written.
bool write_all(int descriptor, std::span<const std::byte> bytes);
// At the end of a file, whole or not at all: of what does not fit, as on a full disk, nothing stays in the file. (From
// a pipe nothing can be taken back.) Error(failed) names the path. For files that are looked at while they grow.
void append_whole(int descriptor, std::span<const std::byte> bytes, const std::string& path);

// The path of a file that can be made again and is kept for the user from one run to the next (kernel timings, network
// figures): below XDG_CACHE_HOME or ~/.cache, in a folder of this project's; empty if there is neither. The folder need
// not exist.
std::string cache_path(const std::string& file);

}  // namespace trireme
