#include "tests/distributed/launched_job.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <random>

namespace trireme::testkit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Of NUL-separated "NAME=value" entries; empty: not there.
std::string value_of(const std::string& environment, const std::string& name) {
  const std::string wanted = name + "=";
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string entry = environment.substr(begin, end - begin);
    if (entry.rfind(wanted, 0) == 0) return entry.substr(wanted.size());
    begin = end + 1;
  }
  return "";
}

Words launch_words(const Words& arguments) {
  Words words{"launch"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Words with_mark(const Words& environment, const std::string& mark) {
  Words variables{"LAUNCH_TEST=" + mark};
  variables.insert(variables.end(), environment.begin(), environment.end());
  return variables;
}

}  // namespace

LaunchedJob::LaunchedJob(const Words& arguments, const Words& environment)
    : LaunchedJob(std::to_string(std::random_device{}()), arguments, environment) {}

LaunchedJob::LaunchedJob(const std::string& mark, const Words& arguments, const Words& environment)
    : RunningCommand(launch_words(arguments), with_mark(environment, mark)), mark_(mark) {}

LaunchedJob::~LaunchedJob() {
  for (const JobProcess& process : processes()) kill(process.pid, SIGKILL);
  if (!segments_.empty()) fs::remove_all(segments_);
}

std::vector<JobProcess> LaunchedJob::processes() const {
  std::vector<JobProcess> found;
  std::error_code ignored;
  for (fs::directory_iterator it("/proc", ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename();
    JobProcess process;
    if (std::from_chars(name.data(), name.data() + name.size(), process.pid).ec != std::errc()) continue;
    const std::string environment = read_file(it->path() / "environ");
    if (value_of(environment, "LAUNCH_TEST") != mark_) continue;
    process.command = read_file(it->path() / "cmdline");
    std::replace(process.command.begin(), process.command.end(), '\0', ' ');
    const std::string rank = value_of(environment, "TRIREME_TASK_INDEX");
    if (!rank.empty()) process.rank = std::stoi(rank);
    process.role = value_of(environment, "TRIREME_TASK_ROLE");
    found.push_back(process);
  }
  for (const JobProcess& process : found) {
    const std::size_t at = process.command.find("/trireme-");
    if (process.command.find(" launch-guard ") == std::string::npos || at == std::string::npos) continue;
    const std::size_t begin = process.command.rfind(' ', at) + 1;
    segments_ = process.command.substr(begin, process.command.find(' ', at) - begin);
  }
  return found;
}

std::vector<JobProcess> LaunchedJob::programs(std::size_t count) const {
  std::vector<JobProcess> programs;
  wait_until(
      [&] {
        programs.clear();
        for (const JobProcess& process : processes()) {
          const bool is_first = std::none_of(programs.begin(), programs.end(), [&](const JobProcess& other) {
            return other.rank == process.rank &&
                   other.role == process.role;  // the program comes before what it has started
          });
          if (process.rank >= 0 && is_first) programs.push_back(process);
        }
        return programs.size() >= count;
      },
      30s);
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.role == "ps", a.rank) < std::pair(b.role == "ps", b.rank);
  });
  return programs;
}

bool LaunchedJob::is_gone_within(std::chrono::milliseconds timeout) const {
  const auto is_gone = [this] {
    const auto left = processes();
    return left.empty() && (segments_.empty() || !fs::exists(segments_)) && fs::is_empty(temporary_folder());
  };
  if (wait_until(is_gone, timeout)) return true;
  for (const JobProcess& process : processes())
    ADD_FAILURE() << "still there: " << process.pid << " " << process.command;
  if (!segments_.empty() && fs::exists(segments_)) ADD_FAILURE() << "still there: " << segments_;
  for (const auto& entry : fs::directory_iterator(temporary_folder())) ADD_FAILURE() << "still there: " << entry.path();
  return false;
}

std::string first_error(const LaunchedJob& job) {
  const std::string text = job.err();
  const std::size_t begin = text.find("trireme: error: ");
  return begin == std::string::npos ? "no error in: " + text : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace trireme::testkit
