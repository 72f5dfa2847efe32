// Reading .gz files into memory, with zlib. Used by the idx reader, whose data sets are given out so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::data {

// The first bytes of a .gz file as they were before; fewer if there are no more. Error(unavailable) in a build without
// zlib; Error(bad_input) naming the file where it is broken.
std::vector<std::byte> gunzip_head(const std::string& path, std::size_t bytes);

// All of it, which must be exactly so many bytes: these come from a header that is not to be trusted, and more than the
// compressed bytes can hold is refused before memory is taken.
std::vector<std::byte> gunzip(const std::string& path, std::int64_t bytes);

}  // namespace trireme::data
