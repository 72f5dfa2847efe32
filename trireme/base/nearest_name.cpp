#include "trireme/base/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace trireme {
namespace {

// Letters and digits in lower case.
std::string canonical(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) result += static_cast<char>(std::tolower(byte));
  }
  return result;
}

// Insertions, deletions, replacements and transpositions that turn a into b (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_exchange = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_exchange) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  const std::string meant = canonical(word);
  std::size_t least = std::max<std::size_t>(1, meant.size() / 3) + 1;  // from here on it is another word
  std::string nearest;
  for (const std::string& name : names) {
    const std::string other = canonical(name);
    const std::size_t changes = edit_distance(meant, other);
    if (changes >= least || changes >= std::min(meant.size(), other.size())) continue;
    least = changes;
    nearest = name;
  }
  return nearest;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const std::string meant = nearest_name(word, names);
  return meant.empty() ? "." : fmt::format("; did you mean '{}'?", meant);
}

}  // namespace trireme
