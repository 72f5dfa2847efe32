// Commands as text for a shell. Used for what ssh hands to the shell of another host, and to show users what would be
// started.
#pragma once

#include <string>
#include <vector>

namespace trireme::cluster {

std::string shell_quoted(const std::string& word);  // as it is where that is safe
std::string shell_line(const std::vector<std::string>& words);

}  // namespace trireme::cluster
