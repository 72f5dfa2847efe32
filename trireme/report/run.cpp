#include "trireme/report/run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json_fields.hpp"

namespace trireme::report {
namespace {

// Records use variable names, users see option names.
std::string option_name(std::string name) {
  if (name == "servers") return "ps";
  if (name == "asynchronous") return "async";  // in older records
  std::ranges::replace(name, '_', '-');
  return name;
}

Json options_of(const Json& config) {
  Json options = Json::object();
  if (!config.is_object()) return options;
  for (const auto& [name, value] : config.items()) options[option_name(name)] = value;
  // Older records.
  if (const auto dropout = options.find("dropout"); dropout != options.end() && dropout->is_boolean()) {
    options["no-dropout"] = !dropout->get<bool>();
    options.erase("dropout");
  }
  if (const auto overlap = options.find("overlap"); overlap != options.end() && overlap->is_boolean()) {
    *overlap = overlap->get<bool>() ? "on" : "off";
  }
  return options;
}

// A value that sets several options together is shown by its label.
Json cell_of(const Json& cell, Json& options) {
  if (!cell.is_object()) return Json::object();
  Json result = Json::object();
  for (const auto& [name, value] : cell.items()) {
    if (!value.is_object()) {
      result[name] = value;
      if (!options.contains(name)) options[name] = value;
      continue;
    }
    result[name] = value.contains("label") ? field(value, {"label"}) : Json(value_text(value));
    for (const auto& [part, setting] : value.items()) {
      if (part != "label" && !options.contains(part)) options[part] = setting;
    }
  }
  return result;
}

// For launched workers the record has each worker's command; this prepends the launch.
std::string launched_command(const std::vector<std::string>& words, const Json& options) {
  const std::string command = record::command_text(words);
  const double workers = value_number(field(options, {"workers"})).value_or(1);
  const double servers = value_number(field(options, {"ps"})).value_or(0);
  const std::string program = "trireme ";
  const bool is_other = command.rfind(program, 0) != 0 || command.rfind(program + "launch ", 0) == 0;
  if ((workers <= 1 && servers <= 0) || is_other) return command;
  const std::string ps = servers > 0 ? fmt::format(" --ps {:g}", servers) : "";
  return fmt::format("trireme launch --workers {:g}{} -- {}", workers, ps, command.substr(program.size()));
}

std::vector<std::string> hosts_of(const std::vector<record::Task>& cluster) {
  std::set<std::string> hosts;
  for (const record::Task& task : cluster) hosts.insert(task.host);
  hosts.erase("");
  return {hosts.begin(), hosts.end()};
}

}  // namespace

double Run::option_or(const char* name, double otherwise) const {
  return value_number(field(options, {name})).value_or(otherwise);
}

std::string Run::option_text(const char* name) const {
  const Json value = field(options, {name});
  return value.is_null() ? std::string() : value_text(value);
}

double Run::effective_batch() const { return option_or("batch-size", 0) * option_or("workers", 1); }

std::vector<double> Run::speed_per_repeat() const {
  std::vector<double> speeds = results.images_per_second_per_repeat;
  std::erase_if(speeds, [](double value) { return value <= 0; });
  return speeds;
}

Run read_run(const Json& json, const std::string& file) {
  Run run;
  read(json, static_cast<record::RunRecord&>(run));
  run.file = file;
  run.options = options_of(run.config);
  run.machine_line = run.machine.host_line();
  run.gpu = run.machine.gpu_name();
  run.hardware = run.machine.hardware();
  run.hosts = hosts_of(run.cluster);
  run.build_line = record::build_line(run.build);
  if (run.study) {
    run.study_name = run.study->name;
    run.figure_kind = run.study->kind;
    run.cell = cell_of(run.study->cell, run.options);
    if (!run.study->framework.empty()) run.framework = run.study->framework;
    run.repeat_command = run.study->command;
  }
  if (run.repeat_command.empty()) run.repeat_command = launched_command(run.command, run.options);
  if (!run.error && !run.interrupted && !(run.images_per_second() > 0)) {
    bad_input("{}: the record has neither results.images_per_second above 0 nor an error; is the file incomplete?",
              run.file);
  }
  return run;
}

}  // namespace trireme::report
