// One setting of the options of `trireme bench` and `trireme launch`, and its command line. Made by study plans and
// `tune`; run by run_trial(). The command line passes on the options it knows as an OptionCatalog.
#pragma once

#include <string>
#include <vector>

#include "trireme/config/option.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

using OptionKind = config::Kind;

struct OptionInfo {
  std::string name;  // long option without dashes: "batch-size"
  OptionKind kind = OptionKind::text;
  bool of_launch = false;                    // else of bench
  const config::Option* declared = nullptr;  // its entry in a table, if it has one
};

class OptionCatalog {
 public:
  // `refused`: options that the commands have but users of this catalog may not set.
  explicit OptionCatalog(std::vector<OptionInfo> options, std::vector<std::string> refused = {})
      : options_(std::move(options)), refused_(std::move(refused)) {}

  const OptionInfo* find(const std::string& name) const;  // null: none
  // Error(bad_input) suggests a similar name and where to read more. `where` begins the message.
  const OptionInfo& get(const std::string& name, const std::string& where) const;

 private:
  std::vector<OptionInfo> options_;
  std::vector<std::string> refused_;
};

struct Setting {
  std::string option;
  Json value;  // scalar: bool for a flag, otherwise a number or text
  bool operator==(const Setting&) const = default;
};
using Configuration = std::vector<Setting>;

const Json* find(const Configuration& configuration, const std::string& option);  // null: not set
// `otherwise` if it is not set, or no whole number.
std::int64_t whole_number_of(const Configuration& configuration, const std::string& option, std::int64_t otherwise);
std::string value_text(const Json& value);                // as on the command line: no quotes
std::string to_text(const Configuration& configuration);  // "batch-size=16 workers=2"

// Error(bad_input) if the value is not of the option's kind or not allowed. `where` begins the message.
void check_value(const OptionInfo& option, const Json& value, const std::string& where);
Json parse_value(const OptionInfo& option, const std::string& text, const std::string& where);  // same error

// The words after `trireme`: "bench --batch-size 16"; with any option of a launch, "launch --workers 2 -- bench ...".
std::vector<std::string> command_words(const Configuration& configuration, const OptionCatalog& options);

}  // namespace trireme::lab
