// Files and folders of data sets as their readers see them: read at any place by any thread. Errors name the file, the
// place and the system's reason. Writers use base/new_file.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"

namespace trireme::data {

class InputFile {
 public:
  // An error of this kind where there is no such file.
  explicit InputFile(std::string path, ErrorKind missing = ErrorKind::bad_input);
  // One that is open; messages call it `path`.
  InputFile(std::string path, UniqueFd file);

  const std::string& path() const { return path_; }
  std::string name() const;  // without the folder
  std::int64_t size() const { return size_; }
  // Threads may read at the same time. Error(failed) where the file ends before.
  void read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  UniqueFd file_;
  std::int64_t size_ = 0;
};

// All of a file; at most so many bytes, because what is in it is not to be trusted.
std::vector<std::byte> read_file(const std::string& path, std::int64_t most_bytes);

// With those above it; one that is there is left alone. WriteError where that cannot be.
void make_folder(const std::string& path);

// Names of what is in a folder, sorted, without hidden ones. Error(bad_input) where there is no such folder.
std::vector<std::string> list_folder(const std::string& folder);
// "train, classes.txt and 17 more", for messages; "nothing" of an empty folder.
std::string contents_of(const std::string& folder);

}  // namespace trireme::data
