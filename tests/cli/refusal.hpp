// What a user must see when the command line is wrong. Used by the tests of the command line.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/run_command.hpp"

namespace trireme::testkit {

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no '" << part << "' in: " << text;
}

// Bad input: exit code 2, nothing on stdout, one line on stderr with all of these parts.
inline void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts,
                           const CommandOptions& options = {}) {
  const CommandResult result = run_trireme(arguments, options);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("trireme: error: ", 0), 0U) << result.err;
  for (const std::string& part : parts) EXPECT_TRUE(contains(result.err, part));
}

}  // namespace trireme::testkit
