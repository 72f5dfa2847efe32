#include "cli/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace trireme::cli {

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const bool has_most = most != std::numeric_limits<std::int64_t>::max();
  const std::string range = has_most ? fmt::format(" from {} to {}", least, most) : fmt::format(", {} or more", least);
  return {[=](const std::string& text) -> std::string {
            std::int64_t number = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
            const bool is_whole = error == std::errc() && end == text.data() + text.size();
            return is_whole && number >= least && number <= most ? "" : "must be a whole number" + range;
          },
          ""};
}

CLI::Validator byte_count() {
  return {[size = CLI::AsSizeValue(true)](std::string& text) -> std::string {
            constexpr const char* kWanted = "must be a number of bytes, as in 65536, 64k or 256MB";
            std::string number = text;  // it is modified before a rejection
            try {
              if (!size(number).empty()) return kWanted;
            } catch (const CLI::Error&) {
              return kWanted;
            }
            text = number;
            return "";
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& texts) {
  return {[texts](const std::string& text) -> std::string {
            if (std::ranges::find(texts, text) != texts.end()) return "";
            return fmt::format("must be one of {}", fmt::join(texts, ", "));
          },
          fmt::format("{{{}}}", fmt::join(texts, ","))};
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

}  // namespace trireme::cli
