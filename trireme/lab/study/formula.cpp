#include "trireme/lab/study/formula.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::lab {

namespace {

using Lookup = Formula::Lookup;
using Term = Formula::Term;

// Far above what people write; parsing and evaluation are recursive.
constexpr std::size_t kLongest = 2000;
constexpr int kDeepest = 50;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80; }  // of UTF-8

struct Token {
  std::string text;  // empty: end of input
  enum class Kind { symbol, number, name, text } kind = Kind::symbol;
  std::size_t column = 0;
};

using Symbols = std::initializer_list<std::string_view>;

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  const Token& current() const { return current_; }
  bool is_symbol(std::string_view text) const {
    return current_.text == text && (current_.kind == Token::Kind::symbol || is_word());
  }
  bool is_word() const { return current_.text == "and" || current_.text == "or" || current_.text == "not"; }
  // Takes the next token if it is one of these.
  std::optional<std::string> take(Symbols symbols) {
    const auto found = std::ranges::find_if(symbols, [&](auto symbol) { return is_symbol(symbol); });
    if (found == symbols.end()) return std::nullopt;
    advance();
    return std::string(*found);
  }
  void advance() {
    while (std::isspace(static_cast<unsigned char>(at(place_))) != 0) ++place_;
    current_ = {.text = "", .kind = Token::Kind::symbol, .column = column()};
    if (place_ == text_.size()) return;
    const char c = text_[place_];
    if (is_digit(c) || (c == '.' && is_digit(at(place_ + 1)))) return take_number();
    if (c == '\'' || c == '"') return take_text();
    if (!is_letter(c)) return take_symbol();
    current_.kind = Token::Kind::name;
    while (is_in_name(place_)) current_.text += text_[place_++];
  }

  [[noreturn]] void expected(std::string_view what) const {
    if (current_.text.empty()) bad_input("{} is missing at the end", what);
    bad_input("{} is expected at character {}, not '{}'", what, current_.column, current_.text);
  }

 private:
  // A '-' is part of a name if a letter follows: "num-intra-threads", but not "workers-1".
  bool is_in_name(std::size_t place) const {
    const char c = at(place);
    return is_letter(c) || is_digit(c) || c == '_' || (c == '-' && is_letter(at(place + 1)));
  }

  void take_number() {
    current_.kind = Token::Kind::number;
    while (is_digit(at(place_)) || at(place_) == '.') current_.text += text_[place_++];
  }

  void take_text() {
    const char quote = text_[place_++];
    const std::size_t end = text_.find(quote, place_);
    if (end == std::string_view::npos) bad_input("the quote at character {} is not closed", current_.column);
    current_.kind = Token::Kind::text;
    current_.text = text_.substr(place_, end - place_);
    place_ = end + 1;
  }

  void take_symbol() {
    for (const std::string_view symbol : {"<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "(", ")"}) {
      if (text_.substr(place_).starts_with(symbol)) {
        current_.text = std::string(symbol);
        place_ += symbol.size();
        return;
      }
    }
    std::size_t end = place_ + 1;
    while (continues_character(at(end))) ++end;
    bad_input("'{}' at character {} has no meaning here; use + - * / % == != < <= > >= and or not ( )",
              text_.substr(place_, end - place_), current_.column);
  }

  char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\0'; }
  std::size_t column() const {  // in characters
    return 1 + place_ -
           static_cast<std::size_t>(
               std::count_if(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(place_), continues_character));
  }

  std::string_view text_;
  std::size_t place_ = 0;
  Token current_;
};

std::string shown(const FormulaValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("'{}'", *text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return fmt::format("{:g}", std::get<double>(value));
}

double as_number(const FormulaValue& value, const std::string& who) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  bad_input("{} takes numbers, and {} is not a number", who, shown(value));
}

bool as_condition(const FormulaValue& value, const std::string& who) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  bad_input("{} takes conditions, which are true or false, and {} is not a condition", who, shown(value));
}

FormulaValue arithmetic(const std::string& operation, double left, double right) {
  if (operation == "+") return left + right;
  if (operation == "-") return left - right;
  if (operation == "*") return left * right;
  if (operation == "<") return left < right;
  if (operation == "<=") return left <= right;
  if (operation == ">") return left > right;
  if (operation == ">=") return left >= right;
  if (right == 0) bad_input("{:g} {} 0: division by zero", left, operation);
  return operation == "/" ? left / right : std::fmod(left, right);
}

bool is_too_large(const FormulaValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr && !std::isfinite(*number);
}

bool are_equal(const FormulaValue& left, const FormulaValue& right) {
  if (left.index() != right.index()) {
    bad_input("{} and {} are of different kinds and cannot be compared", shown(left), shown(right));
  }
  return left == right;
}

FormulaValue applied(const std::string& operation, const Term& first, const Term& second, const Lookup& lookup) {
  const FormulaValue left = first(lookup);
  if (operation == "and" || operation == "or") {
    const bool decides = as_condition(left, operation) == (operation == "or");
    return decides ? left : as_condition(second(lookup), operation);
  }
  const FormulaValue right = second(lookup);
  if (operation == "==") return are_equal(left, right);
  if (operation == "!=") return !are_equal(left, right);
  const FormulaValue result = arithmetic(operation, as_number(left, operation), as_number(right, operation));
  if (is_too_large(result)) bad_input("{} {} {} is too large", shown(left), operation, shown(right));
  return result;
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names) : tokens_(text), names_(names) {}
  Term whole() {
    Term term = any_of();
    if (!tokens_.current().text.empty()) tokens_.expected("an operator");
    return term;
  }

 private:
  static Term constant(const FormulaValue& value) {
    return [value](const Lookup&) { return value; };
  }
  static Term join(const std::string& operation, Term left, Term right) {
    return [operation, left = std::move(left), right = std::move(right)](const Lookup& lookup) {
      return applied(operation, left, right, lookup);
    };
  }
  // Parses one nesting level deeper.
  Term inner(Term (Parser::*parse)()) {
    if (++depth_ > kDeepest) bad_input("it is nested more than {} deep", kDeepest);
    Term term = (this->*parse)();
    --depth_;
    return term;
  }
  // Left-associative operators of equal precedence.
  Term chain(Term (Parser::*operand)(), Symbols symbols) {
    Term left = (this->*operand)();
    while (auto symbol = tokens_.take(symbols)) left = join(*symbol, std::move(left), (this->*operand)());
    return left;
  }
  Term any_of() { return chain(&Parser::all_of, {"or"}); }
  Term all_of() { return chain(&Parser::negation, {"and"}); }
  Term negation() {
    if (!tokens_.take({"not"})) return comparison();
    return [operand = inner(&Parser::negation)](const Lookup& lookup) { return !as_condition(operand(lookup), "not"); };
  }
  std::optional<std::string> take_comparison() { return tokens_.take({"==", "!=", "<=", ">=", "<", ">"}); }
  Term comparison() {
    Term left = sum();
    if (auto symbol = take_comparison()) left = join(*symbol, std::move(left), sum());
    if (take_comparison()) bad_input("comparisons do not chain; write a <= b and b <= c");
    return left;
  }
  Term sum() { return chain(&Parser::product, {"+", "-"}); }
  Term product() { return chain(&Parser::sign, {"*", "/", "%"}); }
  Term sign() {
    if (!tokens_.take({"-"})) return single();
    return join("-", constant(0.0), inner(&Parser::sign));
  }
  Term single() {
    if (tokens_.take({"("})) {
      Term term = inner(&Parser::any_of);
      if (!tokens_.take({")"})) tokens_.expected("')'");
      return term;
    }
    const Token token = tokens_.current();
    Term term = constant(token.text);
    if (token.kind == Token::Kind::number) {
      double value = 0;
      const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      if (error != std::errc() || end != token.text.data() + token.text.size())
        bad_input("'{}' is not a number", token.text);
      term = constant(value);
    } else if (token.kind == Token::Kind::name && (token.text == "true" || token.text == "false")) {
      term = constant(token.text == "true");
    } else if (token.kind == Token::Kind::name && !tokens_.is_word()) {
      std::string name = token.text;
      std::ranges::replace(name, '_', '-');
      names_.push_back(name);
      term = [name](const Lookup& lookup) { return lookup(name); };
    } else if (token.kind != Token::Kind::text) {
      tokens_.expected("a number, a name or a quoted text");
    }
    tokens_.advance();
    return term;
  }

  Tokens tokens_;
  std::vector<std::string>& names_;  // it adds those that it finds
  int depth_ = 0;
};

}  // namespace

Formula::Formula(std::string text, std::string where) : text_(std::move(text)), where_(std::move(where)) {
  if (text_.size() > kLongest)
    bad_input("{}: has {} characters; at most {} are allowed", where_, text_.size(), kLongest);
  try {
    term_ = Parser(text_, names_).whole();
  } catch (const Error& error) {
    bad_input("{}: '{}': {}", where_, text_, error.what());
  }
}

FormulaValue Formula::evaluate(const Lookup& lookup) const {
  try {
    return term_(lookup);
  } catch (const Error& error) {
    bad_input("{}: '{}': {}", where_, text_, error.what());
  }
}

bool Formula::holds(const Lookup& lookup) const {
  const FormulaValue value = evaluate(lookup);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  bad_input("{}: '{}': is {}, not a condition such as workers <= 4", where_, text_, shown(value));
}

double Formula::number(const Lookup& lookup) const {
  const FormulaValue value = evaluate(lookup);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  bad_input("{}: '{}': is {}, not a number", where_, text_, shown(value));
}

}  // namespace trireme::lab
