// Writing to descriptors until all is written. Used by whatever writes files or pipes by itself.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace trireme {

// False where the system refuses; errno says why, and a part may have been written.
bool write_all(int descriptor, std::span<const std::byte> bytes);

// At the end of a file, whole or not at all: of what does not fit, as on a full disk, nothing stays in the file. (From
// a pipe nothing can be taken back.) Error(failed) names the path. For files that are looked at while they grow.
void append_whole(int descriptor, std::span<const std::byte> bytes, const std::string& path);

}  // namespace trireme
