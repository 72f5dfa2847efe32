#include "trireme/base/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"

namespace trireme {
namespace {

// Copying and printing JSON is recursive.
constexpr int kDeepest = 100;

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  const auto check_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) bad_input("{}: nested more than {} levels deep", source, kDeepest);
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string message = error.what();
    bad_input("{}: not valid JSON: {}", source, message.substr(std::min(message.find("] ") + 2, message.size())));
  }
}

Json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read: {}", path, std::strerror(errno));
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) bad_input("{}: is a folder", path);
  return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

void write_json(const Json& json, const std::string& path) {
  // Names that are not UTF-8 (a host, an argument) must not cost the record.
  write_text(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", path);
}

}  // namespace trireme
