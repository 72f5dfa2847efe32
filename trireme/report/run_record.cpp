#include "trireme/report/run_record.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"

namespace trireme::report {
namespace {

Json number(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }

Json to_json(const Task& task) {
  return {{"role", task.role}, {"index", task.index}, {"host", task.host}, {"cores", task.cores}};
}

Json to_json(const Breakdown& breakdown) {
  return {{"compute", number(breakdown.compute)},
          {"communication", number(breakdown.communication)},
          {"exposed_communication", number(breakdown.exposed_communication)},
          {"input_wait", number(breakdown.input_wait)},
          {"optimizer", number(breakdown.optimizer)},
          {"idle", number(breakdown.idle)}};
}

Json to_json(const std::optional<perf::Summary>& seconds) {
  const auto part = [&](double perf::Summary::*of) { return seconds ? number((*seconds).*of) : Json(nullptr); };
  return {{"mean", part(&perf::Summary::mean)},
          {"median", part(&perf::Summary::median)},
          {"p95", part(&perf::Summary::p95)},
          {"stderr", part(&perf::Summary::stderr_mean)}};
}

template <typename Items>
Json list(const Items& items) {
  Json result = Json::array();
  for (const auto& item : items) result.push_back(to_json(item));
  return result;
}

Json to_json(const Results& results) {
  return {{"images_per_second", number(results.images_per_second)},
          {"images_per_second_per_worker", number(results.images_per_second_per_worker)},
          {"images_per_second_per_repeat", results.images_per_second_per_repeat},
          {"step_seconds", to_json(results.step_seconds)},
          {"jitter", number(results.jitter)},
          {"loss", number(results.loss)},
          {"loss_scale", number(results.loss_scale)},
          {"skipped_updates", results.skipped_updates ? Json(*results.skipped_updates) : Json(nullptr)},
          {"breakdown", list(results.breakdown)},
          {"overlap", number(results.overlap)},
          {"communication_bytes", number(results.communication_bytes)},
          {"bus_bytes_per_second", number(results.bus_bytes_per_second)},
          {"link_bytes_per_second", number(results.link_bytes_per_second)},
          {"straggling", results.straggling},
          {"servers", results.servers},
          {"scaling_efficiency", number(results.scaling_efficiency)},
          {"share_of_independent", number(results.share_of_independent)},
          {"alone_images_per_second", results.alone_images_per_second},
          {"independent_images_per_second", results.independent_images_per_second},
          {"io_overhead_percent", number(results.io_overhead_percent)},
          {"io_overhead_percent_per_repeat", results.io_overhead_percent_per_repeat},
          {"in_place_images_per_second", results.in_place_images_per_second},
          {"bad_records", results.bad_records ? Json(*results.bad_records) : Json(nullptr)},
          {"peak_rss_bytes", results.peak_rss_bytes},
          {"flops_per_second", number(results.flops_per_second)},
          {"utilisation", number(results.utilisation)}};
}

}  // namespace

Json to_json(const RunRecord& record) {
  Json json{{"schema", kRunSchema},    {"command", record.command},         {"started", record.started},
            {"build", record.build},   {"machine", record.machine},         {"config", record.config},
            {"given", record.given},   {"cluster", list(record.cluster)},   {"steps", record.steps},
            {"losses", record.losses}, {"results", to_json(record.results)}};
  if (record.interrupted) json["interrupted"] = true;
  if (record.error) json["error"] = *record.error;
  return json;
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

void check_writable(const std::string& path, const std::string& what) {
  if (path == "-") return;
  if (path.empty()) bad_input("the path of {} is empty; give a file, or - for stdout", what);
  // A path that cannot even be examined (name too long, folder not searchable) fails in the trial below.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    bad_input("cannot write {} to '{}': it is a directory; give a file, or - for stdout", what, path);
  constexpr const char* kAdvice = "give a file in an existing, writable folder, or - for stdout";
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) == 0) return;
    bad_input("cannot write {} to '{}': {}; {}", what, path, std::strerror(errno), kAdvice);
  }
  try {
    NewFile trial(path);  // the only test that covers permissions, quotas and read-only file systems alike
  } catch (const Error& error) {
    bad_input("cannot write {}: {}; {}", what, error.what(), kAdvice);
  }
}

}  // namespace trireme::report
