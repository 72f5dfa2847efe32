#include "cli/json_text.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::cli {

report::Json parse_json(std::string_view text, const std::string& source) {
  try {
    return report::Json::parse(text);
  } catch (const report::Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string message = error.what();
    bad_input("{}: is not JSON: {}", source, message.substr(std::min(message.find("] ") + 2, message.size())));
  }
}

}  // namespace trireme::cli
