#include "trireme/lab/net/network_run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::lab {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;

std::vector<NetworkTransport> chosen_transports(const NetworkPlan& plan, const NetworkJob& job) {
  std::vector<NetworkTransport> all{{"tcp", nullptr}};
  all.insert(all.end(), job.transports.begin(), job.transports.end());
  if (plan.transports.empty()) return all;
  std::vector<NetworkTransport> chosen;
  for (const std::string& name : plan.transports) {
    const auto found = std::ranges::find(all, name, &NetworkTransport::name);
    if (found == all.end()) {
      std::vector<std::string> names;
      for (const NetworkTransport& item : all) names.push_back(item.name);
      bad_input("--transports {}: this job has {}; {}", name, fmt::join(names, ", "),
                name == "mpi" ? "mpi is available if mpirun starts the tasks" : "--protocol selects them");
    }
    chosen.push_back(*found);
  }
  return chosen;
}

// Multiples of a float; every other size, because there are several algorithms.
std::vector<std::int64_t> all_reduce_sizes(const NetworkOptions& options) {
  std::vector<std::int64_t> sizes;
  const auto whole = [](std::int64_t bytes) { return std::max<std::int64_t>(bytes / 4 * 4, 4); };
  for (std::int64_t bytes = whole(options.min_bytes); bytes < options.max_bytes; bytes *= 4) sizes.push_back(bytes);
  if (sizes.empty() || sizes.back() < whole(options.max_bytes)) sizes.push_back(whole(options.max_bytes));
  return sizes;
}

bool has_library(const NetworkTransport& transport) {
  return transport.communicator != nullptr && transport.communicator->has_library_all_reduce();
}

void check_library(const NetworkPlan& plan, const std::vector<NetworkTransport>& transports) {
  const auto& asked = plan.algorithms;
  if (std::ranges::find(asked, comm::Algorithm::library) == asked.end()) return;
  if (std::ranges::any_of(transports, has_library)) return;
  fail(ErrorKind::unavailable,
       "--algorithms library: none of the measured transports has its own all-reduce; mpi does");
}

// `library`, if requested, is measured if the transport has one.
std::vector<comm::Algorithm> algorithms_of(const NetworkPlan& plan, const NetworkTransport& transport,
                                           const AllReduceTest& test) {
  if (plan.algorithms.empty()) return test.algorithms();
  std::vector<comm::Algorithm> algorithms = plan.algorithms;
  if (!has_library(transport)) std::erase(algorithms, comm::Algorithm::library);
  return algorithms;
}

void measure_all_reduce(const NetworkPlan& plan, const NetworkTransport& transport, NetworkReport& report) {
  const std::vector<std::int64_t> sizes = all_reduce_sizes(plan.options);
  const AllReduceTest test(*transport.communicator, sizes.back());
  for (const comm::Algorithm algorithm : algorithms_of(plan, transport, test)) {
    for (const std::int64_t bytes : sizes) {
      report.all_reduce.push_back(
          test.measure({.algorithm = algorithm}, std::span(&bytes, 1), plan.options.seconds_per_size));
    }
  }
}

// A step takes longer than a message: allow five times the time.
void measure_model(const NetworkPlan& plan, const NetworkTransport& transport, NetworkReport& report) {
  const AllReduceTest test(*transport.communicator,
                           std::accumulate(report.buckets.begin(), report.buckets.end(), std::int64_t{0}));
  for (const comm::Algorithm algorithm : algorithms_of(plan, transport, test)) {
    report.model_all_reduce.push_back(
        test.measure({.algorithm = algorithm}, report.buckets, 5 * plan.options.seconds_per_size));
  }
}

// The first rank's: another kind of CPU might lay out, and so pad, gradients differently.
std::vector<std::int64_t> common_buckets(comm::Communicator& control, const std::string& model) {
  std::vector<std::int64_t> buckets = gradient_bucket_bytes(model);
  std::int64_t count = std::ssize(buckets);
  comm::broadcast(control, std::as_writable_bytes(std::span(&count, 1)));
  buckets.resize(count);
  comm::broadcast(control, std::as_writable_bytes(std::span(buckets)));
  return buckets;
}

void set_timeouts(const NetworkPlan& plan, const NetworkJob& job) {
  const std::chrono::duration<double> timeout(plan.timeout_seconds);
  job.control.set_timeout(timeout);
  for (const NetworkTransport& transport : job.transports) transport.communicator->set_timeout(timeout);
}

// Of the busiest host relative to its cores. Measured first: waiting tasks use no processor.
void look_at_load(comm::Communicator& control, NetworkReport& report) {
  struct HostLoad {
    double load = 0;
    int cores = 1;
  };
  constexpr std::chrono::milliseconds kLookAtLoad{200};
  const HostLoad mine{.load = perf::current_load(kLookAtLoad), .cores = perf::read_machine(0).cores};
  const std::vector<HostLoad> all = comm::all_gather_value(control, mine);
  const auto busiest = std::ranges::max_element(
      all, [](const HostLoad& a, const HostLoad& b) { return a.load / a.cores < b.load / b.cores; });
  report.load = busiest->load;
  report.cores = busiest->cores;
}

}  // namespace

void check(const NetworkOptions& options) {
  if (options.min_bytes < 1) bad_input("--min-bytes {}: must be 1 or more", options.min_bytes);
  if (options.max_bytes <= options.min_bytes || options.max_bytes > kMostBytes) {
    bad_input("--max-bytes {}: must be above --min-bytes, which is {}, and at most {}", options.max_bytes,
              options.min_bytes, kMostBytes);
  }
  if (options.perturbation < 0) bad_input("--perturbation {}: must be 0 or more bytes", options.perturbation);
  if (!(options.seconds_per_size > 0 && options.seconds_per_size <= 3600)) {
    bad_input("--seconds-per-size {}: must be a number of seconds above 0 and at most 3600", options.seconds_per_size);
  }
}

NetworkReport run_network_test(const NetworkPlan& plan, const NetworkJob& job, NetworkObserver& observer) {
  set_timeouts(plan, job);
  const std::vector<NetworkTransport> transports = chosen_transports(plan, job);
  check_library(plan, transports);
  const std::vector<RankPair> pairs = parse_pairs(plan.pairs, job.control);
  NetworkOptions options = plan.options;
  options.hosts = job.hosts;
  NetworkReport report;
  report.members.assign(job.control.members().begin(), job.control.members().end());
  for (const NetworkTransport& transport : transports) {
    report.transports.emplace_back(
        transport.name, transport.communicator != nullptr ? transport.communicator->transport() : "a plain socket");
  }
  look_at_load(job.control, report);
  observer.on_start(report);
  const auto communicators = std::ranges::count_if(
      transports, [](const NetworkTransport& transport) { return transport.communicator != nullptr; });
  const std::int64_t parts = std::ssize(pairs) * std::ssize(transports) +
                             (plan.measures_all_reduce ? communicators * (plan.model.empty() ? 1 : 2) : 0);
  std::int64_t done = 0;
  for (const RankPair& pair : pairs) {
    for (const NetworkTransport& transport : transports) {
      observer.on_part(done++, parts);
      report.pairs.push_back(measure_pair(job.control, transport, pair, options));
      observer.on_pair(report);
    }
  }
  observer.on_pairs(report);
  if (!plan.measures_all_reduce) return report;
  for (const NetworkTransport& transport : transports) {
    if (transport.communicator == nullptr) continue;
    observer.on_part(done++, parts);
    measure_all_reduce(plan, transport, report);
    observer.on_all_reduce(report, transport.name);
  }
  if (plan.model.empty()) return report;
  report.model = plan.model;
  report.buckets = common_buckets(job.control, plan.model);
  for (const NetworkTransport& transport : transports) {
    if (transport.communicator == nullptr) continue;
    observer.on_part(done++, parts);
    measure_model(plan, transport, report);
  }
  if (!report.model_all_reduce.empty()) observer.on_model(report);
  return report;
}

}  // namespace trireme::lab
