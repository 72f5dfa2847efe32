#include "trireme/report/record_set.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"

namespace trireme::report {
namespace {

namespace fs = std::filesystem;

PlanSummary read_plan(const Json& json) {
  PlanSummary plan{.name = text_field(json, {"name"}),
                   .title = text_field(json, {"title"}),
                   .question = text_field(json, {"question"}),
                   .source = text_field(json, {"source"}),
                   .figure = text_field(json, {"figure"}),
                   .varied = {}};
  if (const Json vary = field(json, {"vary"}); vary.is_object()) {
    for (const auto& [option, values] : vary.items()) plan.varied.push_back(option);
  }
  return plan;
}

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// Unique to a run: time, place, request and measurements to the last digit.
std::string identity_of(const Json& record) {
  Json identity = Json::array();
  for (const char* key : {"started", "machine", "command", "study", "results", "error"})
    identity.push_back(field(record, {key}));
  return identity.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class RecordLoader {
 public:
  void add_file(const std::string& path) {
    std::error_code error;
    if (!files_.insert(fs::weakly_canonical(path, error)).second) return;  // reached by another path before
    const Json json = read_json(path);
    const std::string schema = text_field(json, {"schema"});
    if (schema == record::kRunSchema) {
      add_run(json, path);
    } else if (schema == record::kTrainingSchema) {
      add(json, path, records_.trainings);
    } else if (schema == record::kNetworkSchema) {
      add(json, path, records_.networks);
    } else if (schema == kPlanSchema) {
      const PlanSummary plan = read_plan(json);
      records_.plans[plan.name] = plan;
    } else {
      bad_input("{}: {}; this version reads {}, {} and {}", path,
                schema.empty() ? "not a record (it has no schema)" : fmt::format("its schema is '{}'", schema),
                record::kRunSchema, record::kTrainingSchema, record::kNetworkSchema);
    }
  }

  void add_folder(const std::string& folder) {
    std::vector<std::string> files;
    try {
      files = json_files(folder);
    } catch (const fs::filesystem_error& error) {
      bad_input("{}: cannot be searched for records: {}", folder, error.code().message());
    }
    for (const std::string& file : files) {
      try {
        add_file(file);
      } catch (const Error& error) {
        records_.warnings.push_back(fmt::format("skipped {}", error.what()));
      }
    }
  }

  RecordSet take() {
    if (copies_ > 0) {
      records_.warnings.push_back(fmt::format("{} record{} of runs that are also in other files and count once; {}",
                                              copies_, copies_ == 1 ? "" : "s", first_copy_));
    }
    return std::move(records_);
  }

 private:
  template <typename T>
  static void add(const Json& json, const std::string& path, std::vector<T>& list) {
    T& added = list.emplace_back();
    read(json, added);
    added.file = path;
  }

  void add_run(const Json& json, const std::string& path) {
    const auto [entry, is_new] = runs_.try_emplace(identity_of(json), path);
    if (is_new) {
      records_.runs.push_back(read_run(json, path));
    } else if (++copies_ == 1) {
      first_copy_ = fmt::format("{} is a copy of {}", path, entry->second);
    }
  }

  RecordSet records_;
  std::set<fs::path> files_;
  std::map<std::string, std::string> runs_;  // first file of each run, by identity
  std::size_t copies_ = 0;
  std::string first_copy_;
};

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

RecordSet load_records(const std::vector<std::string>& paths) {
  RecordLoader loader;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      loader.add_folder(path);
    } else if (fs::exists(path, error)) {
      loader.add_file(path);
    } else {
      bad_input("{}: there is no such file or folder", path);
    }
  }
  RecordSet records = loader.take();
  if (records.empty()) {
    const std::string why = records.warnings.empty() ? "" : "; " + records.warnings.front();
    bad_input("no records in {}{}; create some with `trireme bench --record FILE.json` or `trireme sweep`",
              fmt::join(paths, ", "), why);
  }
  return records;
}

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
