// An expression over named values, for constraints of plans ("workers * num-intra-threads <= cores") and derived values
// ("=64 / workers"). Parsed once, to find mistakes before anything runs, and evaluated per cell. Made by StudyPlan.
//
// Numbers, quoted text, names; + - * / %, == != < <= > >=, and, or, not, parentheses. A name may contain '-'
// ("num-intra-threads"), so a minus between names needs spaces around it.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace trireme::lab {

using FormulaValue = std::variant<bool, double, std::string>;

class Formula {
 public:
  using Lookup = std::function<FormulaValue(const std::string& name)>;  // Error(bad_input) for unknown names
  using Term = std::function<FormulaValue(const Lookup& lookup)>;       // a part of it, or all

  // `where` begins every error message: "constraints[1]". Error(bad_input) says what was expected at which character.
  Formula(std::string text, std::string where);

  // Error(bad_input) for values of the wrong kind, division by zero and overflow.
  FormulaValue evaluate(const Lookup& lookup) const;
  bool holds(const Lookup& lookup) const;     // for conditions; anything else is an error
  double number(const Lookup& lookup) const;  // for numbers; likewise

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  // that it may look up

 private:
  std::string text_, where_;
  std::vector<std::string> names_;
  Term term_;
};

}  // namespace trireme::lab
