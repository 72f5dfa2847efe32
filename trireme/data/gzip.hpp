// Reading compressed files with zlib: into memory for the idx reader, whose data sets are given out so, and into a file
// for the TFRecord reader, which reads records in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/files.hpp"

namespace trireme::data {

// The first bytes of a .gz file as they were before; fewer if there are no more. Error(unavailable) in a build without
// zlib; Error(bad_input) naming the file where it is broken.
std::vector<std::byte> gunzip_head(const std::string& path, std::size_t bytes);

// All of it, which must be exactly so many bytes: these come from a header that is not to be trusted, and more than the
// compressed bytes can hold is refused before memory is taken.
std::vector<std::byte> gunzip(const std::string& path, std::int64_t bytes);

// Whether a file that begins like this may be a stream of gzip or zlib.
bool looks_compressed(std::span<const std::byte> head);

struct Unpacked {
  InputFile file;                      // called "<path> (uncompressed)"
  std::optional<std::string> problem;  // why it ends before the end, with file and place
};
// All of a stream of gzip or zlib, as a file without a name in TMPDIR (/var/tmp where that is not set), which is gone
// when it is closed, however the process ends. Error(bad_input) where it would leave less than 256 MB of room there:
// what is in a file is not to be trusted, and others need some too.
Unpacked unpack(const std::string& path);

}  // namespace trireme::data
