// Quotes commands for a shell: for ssh, and for showing users what would be started.
#pragma once

#include <string>
#include <vector>

namespace trireme {

std::string shell_quoted(const std::string& word);  // unchanged if that is safe
std::string shell_line(const std::vector<std::string>& words);

}  // namespace trireme
