// How options and their values are written in labels, axes and sentences.
#include <fmt/format.h>

#include <cctype>

#include "trireme/report/json_fields.hpp"
#include "trireme/report/study.hpp"

namespace trireme::report {
namespace {

std::string counted(const Json& value, const char* one, const char* many) {
  return fmt::format("{} {}", value_text(value), value == Json(1) ? one : many);
}

// Values that say by themselves what they are.
bool speaks_for_itself(const std::string& option) {
  for (const char* known : {"model", "framework", "device", "precision", "variable-update", "placement", "protocol",
                            "machine", "data-name", "mode", "label"}) {
    if (option == known) return true;
  }
  return false;
}

}  // namespace

std::string setting_text(const std::string& option, const Json& value) {
  if (option == "workers") return counted(value, "worker", "workers");
  if (option == "ps") return counted(value, "server", "servers");
  if (option == "num-intra-threads") return counted(value, "thread", "threads");
  if (option == "batch-size") return "batch " + value_text(value);
  if (option == "forward-only") return value == Json(true) ? "forward" : "forward + backward";
  if (option == "build") return "build " + value_text(value);
  if (speaks_for_itself(option)) return value_text(value);
  if (value.is_string() && !value.get<std::string>().empty() && std::isupper(value.get<std::string>()[0]))
    return value_text(value);  // a label that a plan gives
  return option + " " + value_text(value);
}

std::string settings_text(const Json& settings) {
  std::string text;
  for (const auto& [option, value] : settings.items()) {
    if (!text.empty()) text += ", ";
    text += setting_text(option, value);
  }
  return text;
}

std::string option_title(const std::string& option) {
  if (option == "ps") return "parameter servers";
  if (option == "num-intra-threads") return "threads per worker";
  if (option == "num-inter-threads") return "operations at a time";
  if (option == "batch-size") return "batch per worker";
  if (option == "bucket-mb") return "bucket (MB)";
  return option;
}

std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 && letter < 128) {
      result += static_cast<char>(std::tolower(letter));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "x" : result;
}

}  // namespace trireme::report
