// Files and folders of data sets for readers: random access from any thread. Errors name the file, the place and the
// system's reason. Writers use base/new_file.hpp.
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
  explicit InputFile(std::string path, ErrorKind missing = ErrorKind::bad_input);  // `missing`: kind of error
  InputFile(std::string path, UniqueFd file);  // an open file; messages call it `path`

  const std::string& path() const { return path_; }
  std::string name() const;  // without the folder
  std::int64_t size() const { return size_; }
  void read(std::int64_t offset, std::span<std::byte> out) const;  // thread-safe; Error(failed) if too short

 private:
  std::string path_;
  UniqueFd file_;
  std::int64_t size_ = 0;
};

std::vector<std::byte> read_file(const std::string& path, std::int64_t most_bytes);  // contents are not trusted

void make_folder(const std::string& path);  // with parents, if missing; WriteError on failure

// Sorted names in a folder, without hidden ones. Error(bad_input) if there is no such folder.
std::vector<std::string> list_folder(const std::string& folder);
std::string contents_of(const std::string& folder);  // for messages: "train, classes.txt and 17 more", "nothing"

}  // namespace trireme::data
