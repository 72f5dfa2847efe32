// An expression over named values, as plans have them in constraints ("workers * num-intra-threads <= cores") and in
// values that follow from others ("=64 / workers"). Parsed once, so that a mistake is found before anything runs, and
// evaluated for every cell. Made by StudyPlan.
//
// Numbers, text in quotes, names; + - * / %, == != < <= > >=, and, or, not, parentheses. A name may have '-' inside
// ("num-intra-threads"), so a minus between names needs spaces around it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace trireme::lab {

using FormulaValue = std::variant<bool, double, std::string>;

class Formula {
 public:
  // The value of a name; throws Error(bad_input) where there is none.
  using Lookup = std::function<FormulaValue(const std::string& name)>;

  // `where` begins the message of every error: "constraints[1]". Error(bad_input) says what was expected and at which
  // character.
  Formula(std::string text, std::string where);

  // Error(bad_input) where values are of the wrong kind, something is divided by zero, or a number becomes too large.
  FormulaValue evaluate(const Lookup& lookup) const;
  bool holds(const Lookup& lookup) const;     // of a condition; anything else is an error
  double number(const Lookup& lookup) const;  // of a number; likewise

  const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_, where_;
  std::shared_ptr<const Node> root_;  // shared by copies: it does not change
};

}  // namespace trireme::lab
