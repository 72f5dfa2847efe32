// One setting of the options of `trireme bench` and `trireme launch` as data, and the command line that it stands for.
// Made by plans of studies and by whoever searches for a good one; run by run_trial(). Which options there are, and of
// which kind, is known to the command line alone, which hands an OptionCatalog on.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/run_record.hpp"

namespace trireme::lab {

enum class OptionKind : std::uint8_t { flag, integer, number, text };

struct OptionInfo {
  std::string name;  // the long option without dashes: "batch-size"
  OptionKind kind = OptionKind::text;
  bool of_launch = false;  // else of bench
};

class OptionCatalog {
 public:
  // `refused` are options that the commands have, but not for who uses the catalog.
  explicit OptionCatalog(std::vector<OptionInfo> options, std::vector<std::string> refused = {})
      : options_(std::move(options)), refused_(std::move(refused)) {}

  const OptionInfo* find(const std::string& name) const;  // null: there is none
  // Error(bad_input), with a name that is nearly the same and where to read about them. `where` begins the message.
  const OptionInfo& get(const std::string& name, const std::string& where) const;

 private:
  std::vector<OptionInfo> options_;
  std::vector<std::string> refused_;
};

struct Setting {
  std::string option;
  Json value;  // a scalar: bool for a flag, otherwise a number or text
  bool operator==(const Setting&) const = default;
};
using Configuration = std::vector<Setting>;

const Json* find(const Configuration& configuration, const std::string& option);  // null: it is not set
std::string value_text(const Json& value);                // as the command line has it: no quotes
std::string to_text(const Configuration& configuration);  // "batch-size=16 workers=2"

// Error(bad_input) where the value is not of the option's kind. `where` begins the message.
void check_value(const OptionInfo& option, const Json& value, const std::string& where);
// The value that a user has typed. Error(bad_input) likewise.
Json parse_value(const OptionInfo& option, const std::string& text, const std::string& where);

// One option as the command line has it: "--batch-size", "16".
std::vector<std::string> option_words(const Setting& setting);
// The words after `trireme`: "bench --batch-size 16", or, where there is more than one worker, a server, or any other
// option of a launch, "launch --workers 2 -- bench --batch-size 16".
std::vector<std::string> command_words(const Configuration& configuration, const OptionCatalog& options);

}  // namespace trireme::lab
