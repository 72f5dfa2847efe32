#include "trireme/report/run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/cluster/shell_text.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

// Records use variable names, users see option names.
std::string option_name(std::string name) {
  if (name == "servers") return "ps";
  if (name == "asynchronous") return "async";  // in older records
  std::ranges::replace(name, '_', '-');
  return name;
}

Json options_of(const Json& record) {
  Json options = Json::object();
  const Json config = field(record, {"config"});
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
Json cell_of(const Json& study, Json& options) {
  const Json cell = field(study, {"cell"});
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
std::string launched_command(const Json& record, const Json& options) {
  const std::string command = command_text(field(record, {"command"}));
  const double workers = value_number(field(options, {"workers"})).value_or(1);
  const double servers = value_number(field(options, {"ps"})).value_or(0);
  const std::string program = "trireme ";
  const bool is_other = command.rfind(program, 0) != 0 || command.rfind(program + "launch ", 0) == 0;
  if ((workers <= 1 && servers <= 0) || is_other) return command;
  const std::string ps = servers > 0 ? fmt::format(" --ps {:g}", servers) : "";
  return fmt::format("trireme launch --workers {:g}{} -- {}", workers, ps, command.substr(program.size()));
}

std::vector<Breakdown> breakdown_of(const Json& record) {
  std::vector<Breakdown> ranks;
  const Json list = field(record, {"results", "breakdown"});
  if (!list.is_array()) return ranks;
  for (const Json& rank : list) {
    ranks.push_back({.compute = number_field(rank, {"compute"}),
                     .communication = number_field(rank, {"communication"}),
                     .exposed_communication = number_field(rank, {"exposed_communication"}),
                     .input_wait = number_field(rank, {"input_wait"}),
                     .optimizer = number_field(rank, {"optimizer"}),
                     .idle = number_field(rank, {"idle"})});
  }
  return ranks;
}

std::string hardware_line(const Json& machine) {
  if (!machine.is_object()) return kUnknownMachine;
  std::string line = text_field(machine, {"cpu"});
  if (line.empty()) line = "unknown CPU";
  const auto cores = number_field(machine, {"cores"});  // not only those a launch left to this process
  if (cores) line += fmt::format(", {:g} core{}", *cores, *cores == 1 ? "" : "s");
  return line;
}

std::vector<std::string> hosts_of(const Json& record) {
  std::set<std::string> hosts;
  if (const Json cluster = field(record, {"cluster"}); cluster.is_array()) {
    for (const Json& task : cluster) hosts.insert(text_field(task, {"host"}));
  }
  hosts.erase("");
  return {hosts.begin(), hosts.end()};
}

void read_results(const Json& record, Run& run) {
  const auto speed = number_field(record, {"results", "images_per_second"});
  if (!speed || *speed <= 0) {
    if (run.interrupted) return;
    bad_input("{}: the record has neither results.images_per_second above 0 nor an error; is the file incomplete?",
              run.file);
  }
  run.images_per_second = *speed;
  run.speed_per_repeat = number_list(record, {"results", "images_per_second_per_repeat"});
  std::erase_if(run.speed_per_repeat, [](double value) { return value <= 0; });
  run.breakdown = breakdown_of(record);
  run.io_overhead_percent = number_list(record, {"results", "io_overhead_percent_per_repeat"});
  run.utilisation = number_field(record, {"results", "utilisation"});
  run.overlap = number_field(record, {"results", "overlap"});
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

Run read_run(const Json& record, const std::string& file) {
  Run run;
  run.file = file;
  run.options = options_of(record);
  if (Json given = field(record, {"given"}); given.is_array()) run.given = std::move(given);
  run.started = text_field(record, {"started"});
  run.machine_facts = field(record, {"machine"});
  run.build_facts = field(record, {"build"});
  run.machine = host_line(run.machine_facts);
  run.gpu = gpu_name(run.machine_facts);
  run.hardware = hardware_line(run.machine_facts);
  run.hosts = hosts_of(record);
  run.build = build_line(run.build_facts);
  if (const Json warnings = field(run.machine_facts, {"warnings"}); warnings.is_array()) {
    for (const Json& warning : warnings) run.machine_warnings.push_back(value_text(warning));
  }
  run.interrupted = field(record, {"interrupted"}) == Json(true);

  const Json study = field(record, {"study"});
  if (study.is_object()) {
    run.study = text_field(study, {"name"});
    run.kind = text_field(study, {"kind"});
    run.cell = cell_of(study, run.options);
    if (const std::string framework = text_field(study, {"framework"}); !framework.empty()) run.framework = framework;
    run.command = text_field(study, {"command"});
  }
  if (run.command.empty()) run.command = launched_command(record, run.options);

  if (const Json error = field(record, {"error"}); !error.is_null()) {
    run.error = value_text(error);
  } else {
    read_results(record, run);
  }
  return run;
}

std::string host_line(const Json& machine) {
  const std::string host = text_field(machine, {"host"});
  return host.empty() ? hardware_line(machine) : host + ": " + hardware_line(machine);
}

std::string gpu_name(const Json& machine) { return text_field(machine, {"gpu", "device"}); }

std::string machine_line(const Json& machine) {
  const std::string gpu = gpu_name(machine);
  return host_line(machine) + (gpu.empty() ? "" : ", " + gpu);
}

std::string build_line(const Json& build) {
  const std::string version = text_field(build, {"version"}), git = text_field(build, {"git"});
  if (version.empty() && git.empty()) return "unknown build";
  return git.empty() ? version : fmt::format("{} ({})", version, git);
}

std::string command_text(const Json& arguments) {
  if (arguments.is_string()) return arguments.get<std::string>();
  if (!arguments.is_array() || arguments.empty()) return "";
  std::vector<std::string> words;
  for (const Json& argument : arguments) words.push_back(value_text(argument));
  words[0] = std::filesystem::path(words[0]).filename();
  return cluster::shell_line(words);
}

}  // namespace trireme::report
