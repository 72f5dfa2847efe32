#include "trireme/base/json.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
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

void check_writable(const std::string& path, const std::string& what) {
  if (path == "-") return;
  if (path.empty()) bad_input("the path of {} is empty; give a file, or - for stdout", what);
  // A path that cannot even be examined (name too long, folder not searchable) fails in the trial below.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    bad_input("cannot write {} to '{}': it is a directory; give a file, or - for stdout", what, path);
  constexpr const char* kAdvice = "give a file in an existing, writable folder, or - for stdout";
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) == 0) return;
    bad_input("cannot write {} to '{}': {}; {}", what, path, std::strerror(errno), kAdvice);
  }
  check_can_make(path, fmt::format("cannot write {}: ", what), kAdvice);
}

Json field(const Json& json, Path path) {
  const Json* found = &json;
  for (const char* key : path) {
    if (!found->is_object()) return nullptr;
    const auto entry = found->find(key);
    if (entry == found->end()) return nullptr;
    found = &*entry;
  }
  return *found;
}

std::optional<double> number_field(const Json& json, Path path) { return value_number(field(json, path)); }

std::string text_field(const Json& json, Path path) {
  const Json found = field(json, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "default";
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<double> value_number(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

}  // namespace trireme
