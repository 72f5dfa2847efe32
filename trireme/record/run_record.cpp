#include "trireme/record/run_record.hpp"

#include <fmt/chrono.h>

#include <filesystem>
#include <fstream>

#include "trireme/base/json.hpp"
#include "trireme/base/shell_text.hpp"

namespace trireme::record {
namespace {

std::string counted_cores(int cores) {
  return cores > 0 ? fmt::format(", {} core{}", cores, cores == 1 ? "" : "s") : "";
}

}  // namespace

std::string Machine::gpu_name() const { return text_field(gpu, {"device"}); }

// All cores, not only those that a launch left to this process.
std::string Machine::hardware() const {
  if (cpu.empty() && host.empty() && cores == 0) return kUnknownMachine;
  return (cpu.empty() ? "unknown CPU" : cpu) + counted_cores(cores);
}

std::string Machine::host_line() const { return host.empty() ? hardware() : host + ": " + hardware(); }

std::string Machine::line() const {
  const std::string gpu_part = gpu_name();
  return host_line() + (gpu_part.empty() ? "" : ", " + gpu_part);
}

std::optional<double> RunRecord::predicted_images_per_second() const {
  for (const ParallelPlan& plan : plans) {
    if (plan.chosen) return plan.images_per_second;
  }
  return std::nullopt;
}

std::string build_line(const Json& build) {
  const std::string version = text_field(build, {"version"}), git = text_field(build, {"git"});
  if (version.empty() && git.empty()) return "unknown build";
  return git.empty() ? version : fmt::format("{} ({})", version, git);
}

std::string command_text(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  if (command.size() == 1 && command[0].find(' ') != std::string::npos) return command[0];  // a whole line
  std::vector<std::string> words = command;
  words[0] = std::filesystem::path(words[0]).filename();
  return shell_line(words);
}

std::string rfc3339(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace trireme::record
