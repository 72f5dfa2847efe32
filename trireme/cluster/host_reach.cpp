#include "trireme/cluster/host_reach.hpp"

#include <cctype>
#include <sstream>
#include <string_view>

namespace trireme::cluster {

std::string last_words(const std::string& complaints, const HostReach& reach) {
  std::istringstream lines(complaints);
  std::string text, of_reach;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
    if (!line.empty()) (line.starts_with(reach.name + ": ") ? of_reach : text) = line;
  }
  if (text.empty()) text = of_reach;
  constexpr std::string_view kOurs = "trireme: error: ";
  if (text.starts_with(kOurs)) text.erase(0, kOurs.size());
  return text;
}

}  // namespace trireme::cluster
