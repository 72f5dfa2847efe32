// One setting of the options of `trireme bench` and `trireme launch`, and its command line. Made by study plans and
// `tune`; run by run_trial(). The command line passes on the options it knows as an OptionCatalog.
#pragma once

#include <string>
#include <vector>

#include "trireme/config/option.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

// The options that studies may set, as the tables declare them.
class OptionCatalog {
 public:
  // `refused`: what the commands have and studies may not set.
  explicit OptionCatalog(std::vector<const config::Option*> options, std::vector<std::string> refused = {})
      : options_(std::move(options)), refused_(std::move(refused)) {}

  const config::Option* find(const std::string& name) const;  // null: none
  // Error(bad_input) suggests a similar name and where to read more. `where` begins the message.
  const config::Option& get(const std::string& name, const std::string& where) const;

 private:
  std::vector<const config::Option*> options_;
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

// Error(bad_input), beginning with `where`, if it is not a value of the option's kind or not allowed.
Json parse_value(const config::Option& option, const std::string& text, const std::string& where);

// The words after `trireme`: "bench --batch-size 16"; with any option of a launch, "launch --workers 2 -- bench ...".
std::vector<std::string> command_words(const Configuration& configuration);

}  // namespace trireme::lab
