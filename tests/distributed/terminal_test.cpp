// A terminal that is closed while a benchmark runs in it: the benchmark ends as after Ctrl-C, with its record.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/running_command.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

// An interactive shell that runs one command: when its terminal goes away it tells the command, and the kernel does so
// once more when the shell itself has gone.
class ShellInTerminal {
 public:
  explicit ShellInTerminal(const std::string& command) {
    const std::string line = command + "; :";  // or the shell would become the command
    pid_ = forkpty(&master_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    signal(SIGHUP, SIG_DFL);  // tests may run under nohup
    execlp("bash", "bash", "--norc", "-i", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  ~ShellInTerminal() {
    close();
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ShellInTerminal(const ShellInTerminal&) = delete;
  ShellInTerminal& operator=(const ShellInTerminal&) = delete;

  bool wait_for_output(const std::string& text) {
    return wait_until(
        [&] {
          std::array<char, 4096> chunk{};
          pollfd polled{master_, POLLIN, 0};
          while (poll(&polled, 1, 0) > 0) {
            const ssize_t count = read(master_, chunk.data(), chunk.size());
            if (count <= 0) break;
            said_.append(chunk.data(), count);
          }
          return has(said_, text);
        },
        60s);
  }
  const std::string& said() const { return said_; }
  void close() {
    if (master_ >= 0) ::close(master_);
    master_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int master_ = -1;
  std::string said_;
};

class Terminal : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(With, Terminal, ::testing::Values("", "launch --workers 2 --oversubscribe --"),
                         [](const auto& chosen) { return *chosen.param == '\0' ? "ABenchmark" : "ALaunch"; });

TEST_P(Terminal, ClosingItKeepsTheRecord) {
  const TemporaryFolder folder;
  const std::string record = folder / "record.json";
  ShellInTerminal shell(std::string(TRIREME_BINARY) + " " + GetParam() +
                        " bench --model resnet20 --batch-size 64 --num-batches 100000 --num-warmup-batches 0 "
                        "--display-every 1 --autotune off --record " +
                        record);
  ASSERT_TRUE(shell.wait_for_output("1\timages/sec")) << shell.said();
  shell.close();
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(record); }, 60s)) << "the record is lost";
  const nlohmann::json json = read_record(record);
  EXPECT_TRUE(json.value("interrupted", false));
  EXPECT_EQ(json.value("error", ""), "");
}

}  // namespace
}  // namespace trireme::testkit
