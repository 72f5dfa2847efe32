// Checks for bodies that run on many ranks, with or without a test framework around them: they throw.
#pragma once

#include <string>
#include <string_view>

#include "trireme/base/error.hpp"

namespace trireme::comm::testkit {

inline void expect(bool holds, std::string_view what) {
  if (!holds) fail(ErrorKind::failed, "does not hold: {}", what);
}

// What a call says when it fails.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline void expect_contains(const std::string& text, std::string_view part) {
  if (text.find(part) == std::string::npos) fail(ErrorKind::failed, "'{}' is not in '{}'", part, text);
}

}  // namespace trireme::comm::testkit
