// Errors of the whole project: one exception type with few kinds. A message says what was wrong, where,
// what was expected and what to do. Only main() and the tests catch; main() turns the kind into the exit code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace trireme {

enum class ErrorKind {
  bad_input,    // the caller asked for something that cannot be: exit code 2
  unavailable,  // this machine or build lacks what is needed: exit code 3
  failed,       // a library or the system refused at run time: exit code 1
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::bad_input, format, std::forward<Args>(args)...);
}

}  // namespace trireme
