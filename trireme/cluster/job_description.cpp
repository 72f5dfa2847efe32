#include "trireme/cluster/job_description.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/cluster/environment.hpp"
#include "trireme/comm/cluster_spec.hpp"

namespace trireme::cluster {

bool JobDescription::has_only_workers() const {
  return std::ranges::all_of(tasks, [](const Task& task) { return task.role == kWorkerRole; });
}

std::string JobDescription::name(int task) const {
  const Task& named = tasks.at(task);
  return fmt::format("{} {}", has_only_workers() ? "rank" : named.role, named.index);
}

std::string JobDescription::prefix(int task) const {
  const Task& named = tasks.at(task);
  return has_only_workers() ? fmt::format("[{}] ", named.index) : fmt::format("[{} {}] ", named.role, named.index);
}

void tell_addresses(JobDescription& job) {
  comm::ClusterSpec spec;
  for (const Task& task : job.tasks) {
    if (task.address.empty()) return;
    (task.role == kWorkerRole ? spec.workers : spec.servers).push_back(task.address);
  }
  for (Task& task : job.tasks) task.environment[kClusterVariable] = comm::to_json_text(spec);
}

void set_port(Task& task, int port) {
  if (!task.address.empty()) task.address = fmt::format("{}:{}", task.address.substr(0, task.address.rfind(':')), port);
}

std::string names(const JobDescription& job, const std::vector<int>& tasks) {
  if (tasks.size() == 1) return job.name(tasks.front());
  std::vector<std::string> texts;
  for (const int task : tasks) {
    texts.push_back(job.has_only_workers() ? fmt::format("{}", job.tasks.at(task).index) : job.name(task));
  }
  const std::string last = texts.back();
  texts.pop_back();
  return fmt::format("{}{} and {}", job.has_only_workers() ? "ranks " : "", fmt::join(texts, ", "), last);
}

std::string names_with_hosts(const JobDescription& job, const std::vector<int>& tasks) {
  std::vector<std::string> hosts;  // in task order
  for (const int task : tasks) {
    const std::string& host = job.tasks.at(task).host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return fmt::format("{} on {}", names(job, tasks), fmt::join(hosts, ", "));
}

std::string range_text(const std::vector<int>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(first == last ? fmt::format("{}", numbers[first])
                                   : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

namespace {

std::string place_text(const std::vector<int>& processors) {
  if (processors.empty()) return "not bound";
  return fmt::format("on processor{} {}", processors.size() == 1 ? "" : "s", range_text(processors));
}

// "4 workers", "4 workers and 2 ps"
std::string count_text(const JobDescription& job, const std::vector<int>& tasks) {
  std::vector<std::pair<std::string, int>> counts;  // in task order
  for (const int task : tasks) {
    const std::string& role = job.tasks[task].role;
    if (counts.empty() || counts.back().first != role) counts.emplace_back(role, 0);
    ++counts.back().second;
  }
  std::vector<std::string> texts;
  for (const auto& [role, count] : counts) {
    texts.push_back(fmt::format("{} {}{}", count, role, role == kWorkerRole && count != 1 ? "s" : ""));
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

}  // namespace

std::string describe(const JobDescription& job, const std::string& host) {
  std::vector<int> tasks;
  std::vector<std::string> places;
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].host != host) continue;
    tasks.push_back(static_cast<int>(i));
    places.push_back(fmt::format("{} {}", job.name(tasks.back()), place_text(job.tasks[i].processors)));
  }
  return fmt::format("{} on {}: {}", count_text(job, tasks), host, fmt::join(places, ", "));
}

}  // namespace trireme::cluster
