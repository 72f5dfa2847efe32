#include "cli/study_plans.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "trireme/base/error.hpp"
#include "trireme/cluster/shell_text.hpp"
#include "trireme/lab/ready_plans.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::cli {
namespace {

using report::Json;

Json parse_json(std::string_view text, const std::string& source) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string message = error.what();
    bad_input("{}: is not JSON: {}", source, message.substr(std::min(message.find("] ") + 2, message.size())));
  }
}

std::vector<std::string_view> ready_names() {
  std::vector<std::string_view> names;
  for (const lab::ReadyPlan& ready : lab::ready_plans()) names.push_back(ready.name);
  return names;
}

}  // namespace

Json find_plan(const std::string& plan) {
  if (plan.empty()) {
    bad_input("which plan? A file, or one of the ready-made ones: {}; see trireme sweep --list",
              fmt::join(ready_names(), ", "));
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(plan, ignored)) {
    std::ifstream file(plan, std::ios::binary);
    return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), plan);
  }
  for (const lab::ReadyPlan& ready : lab::ready_plans()) {
    if (ready.name == plan) return parse_json(ready.text, plan);
  }
  bad_input("{}: there is no such file, and the ready-made plans are {}", plan, fmt::join(ready_names(), ", "));
}

lab::StudyMachine this_machine() {
  const perf::Machine machine = perf::read_machine();
  const int threads_per_core = std::max(1, machine.hardware_threads / std::max(1, machine.cores));
  return {.cores = machine.usable_cores, .hardware_threads = machine.usable_cores * threads_per_core};
}

std::string go_on_text() {
  std::vector<std::string> words = report::command_line();
  words.front() = "trireme";
  return fmt::format("what was measured is kept; to go on: {}\n", cluster::shell_line(words));
}

}  // namespace trireme::cli
