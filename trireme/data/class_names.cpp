#include "trireme/data/class_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/data/files.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostBytes = 16 << 20;

std::vector<std::string> lines_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path, kMostBytes);
  std::vector<std::string> lines(1);
  for (const std::byte byte : bytes) {
    const char character = static_cast<char>(byte);
    if (character == '\n') {
      lines.emplace_back();
    } else if (character != '\r') {
      lines.back().push_back(character);
    }
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

std::vector<std::string> read_class_names(const std::string& path) {
  std::vector<std::string> names = lines_of(path);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) bad_input("{}, line {}: the name of a class is empty", path, i + 1);
    if (!seen.insert(names[i]).second) bad_input("{}, line {}: the class '{}' is listed twice", path, i + 1, names[i]);
  }
  return names;
}

std::vector<std::string> class_names_in(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / kClassNamesFile;
  return std::filesystem::exists(path) ? read_class_names(path) : std::vector<std::string>{};
}

void write_class_names(const std::string& folder, const std::vector<std::string>& names) {
  NewFile file(std::filesystem::path(folder) / kClassNamesFile);
  for (const std::string& name : names) file.write(name + "\n");
  file.commit();
}

void add_text(ClassTexts& texts, std::int32_t label, const std::string& text) {
  if (text.empty()) return;
  std::string& kept = texts[label];
  if (kept.empty() || text < kept) kept = text;
}

std::vector<std::string> names_from_texts(const ClassTexts& texts, std::int32_t classes) {
  constexpr std::int32_t kMostClasses = 100'000;  // a larger label is a mistake, and not worth the memory
  const bool has_names = std::any_of(texts.begin(), texts.end(), [](const auto& entry) {
    return !entry.second.empty() && entry.second != std::to_string(entry.first);
  });
  std::vector<std::string> names;
  if (!has_names || classes > kMostClasses) return names;
  std::set<std::string> taken;
  for (std::int32_t label = 0; label < classes; ++label) {
    const auto found = texts.find(label);
    std::string name = found == texts.end() ? "" : found->second;
    // A name must be one line of classes.txt and a valid folder name.
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0 || c == '/'; }, ' ');
    if (name.empty()) name = std::to_string(label);
    if (name.front() == '.') name.insert(name.begin(), '_');
    while (!taken.insert(name).second) name += fmt::format(" ({})", label);
    names.push_back(std::move(name));
  }
  return names;
}

std::string numbered_class(int label, int classes) {
  return fmt::format("{:0{}}", label, fmt::formatted_size("{}", classes - 1));
}

}  // namespace trireme::data
