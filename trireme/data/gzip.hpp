// Reads compressed files with zlib: into memory for the idx reader, whose data sets are distributed that way, and into
// a file for the TFRecord reader, which needs random access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/files.hpp"

namespace trireme::data {

// The first uncompressed bytes of a .gz file; fewer if there are no more. Error(unavailable) in a build without zlib;
// Error(bad_input) names the file if it is broken.
std::vector<std::byte> gunzip_head(const std::string& path, std::size_t bytes);

// The whole content, exactly `bytes` long. `bytes` comes from an untrusted header: a size beyond what the compressed
// bytes can hold is rejected before allocating.
std::vector<std::byte> gunzip(const std::string& path, std::int64_t bytes);

bool looks_compressed(std::span<const std::byte> head);  // may be gzip or zlib

struct Unpacked {
  InputFile file;                      // called "<path> (uncompressed)"
  std::optional<std::string> problem;  // why it ends early, with file and place
};
// Unpacks a gzip or zlib stream into an unnamed file in TMPDIR (default /var/tmp), which disappears when closed.
// Error(bad_input) if less than 256 MB would stay free there: contents are not trusted, and others need space.
Unpacked unpack(const std::string& path);

}  // namespace trireme::data
