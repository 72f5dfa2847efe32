// Tasks that print more than anybody reads: they wait, and nobody's memory grows with what is not read yet.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/hosts/launch_hosts.hpp"
#include "trireme/base/shell_text.hpp"

namespace trireme::testkit {
namespace {

// The most memory that a process of a launch has had so far, in KB.
constexpr const char* kMostMemory =
    "for p in /proc/[0-9]*; do tr '\\0' ' ' 2>/dev/null < $p/cmdline | grep -q '^[^ ]*trireme launch' && "
    "sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' $p/status; done | sort -n | tail -n 1";

TEST_F(LaunchHosts, AFloodOfOutputArrivesWholeAndTakesLittleMemory) {
  constexpr int kLines = 1'000'000;  // of each worker: 100 MB
  const std::string line(90, 'x');
  Words arguments = script_on("n0,n1", 2, fmt::format("yes flood {} | head -n {}", line, kLines));
  arguments.insert(arguments.begin(), {TRIREME_BINARY, "launch"});
  const CommandOutcome outcome = run_shell(
      fmt::format("({} 2>/dev/null | {{ sleep 3; {}; grep -c flood; }})", shell_line(arguments), kMostMemory));
  std::istringstream words(outcome.output);
  std::int64_t kilobytes = 0, lines = 0;
  words >> kilobytes >> lines;
  EXPECT_EQ(lines, 2 * kLines) << outcome.output.substr(0, 500);
  EXPECT_GT(kilobytes, 1000) << "no process of the launch was seen";
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::int64_t kMost = 120'000 + (256 << 10);  // what was freed is kept in quarantine
#else
  constexpr std::int64_t kMost = 120'000;
#endif
  EXPECT_LT(kilobytes, kMost);
  expect_nothing_left();
}

}  // namespace
}  // namespace trireme::testkit
