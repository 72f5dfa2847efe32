#include "trireme/report/record_set.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_fields.hpp"

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

}  // namespace trireme::report
