// The project's errors: one exception type with few kinds. Messages say what was wrong, where, what was expected and
// what to do. Only main() and tests catch; main() turns the kind into the exit code.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

namespace trireme {

enum class ErrorKind {  // numbers are exit codes
  failed = 1,           // a library or the system refused at run time
  bad_input = 2,        // the caller asked for something impossible
  unavailable = 3,      // this machine or build lacks what is needed
};

inline int exit_code(ErrorKind kind) { return static_cast<int>(kind); }
// The inverse, for the launcher; other exit codes are failures.
inline ErrorKind error_kind(int code) {
  return code == 2 || code == 3 ? static_cast<ErrorKind>(code) : ErrorKind::failed;
}

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

// Prints "trireme: <text>" on stderr, with "error:" and "warning:" in color on a terminal (not if NO_COLOR is set).
// Failure to write, as on a full disk, is ignored: work continues.
void log_line(const std::string& text) noexcept;

}  // namespace trireme
