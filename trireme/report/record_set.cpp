#include "trireme/report/record_set.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainSchema = "trireme.train/1";
constexpr const char* kNetSchema = "trireme.net/1";
constexpr const char* kPlanSchema = "trireme.plan/1";

Json parse_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read", path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) bad_input("{}: not JSON; was it written whole?", path);
  return json;
}

StudyPlan read_plan(const Json& json) {
  StudyPlan plan{.name = text_field(json, {"name"}),
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

void add_file(const std::string& path, RecordSet& records) {
  const Json json = parse_file(path);
  const std::string schema = text_field(json, {"schema"});
  if (schema == kRunSchema) {
    records.runs.push_back(read_run(json, path));
  } else if (schema == kTrainSchema) {
    records.trainings.push_back({path, json});
  } else if (schema == kNetSchema) {
    records.networks.push_back({path, json});
  } else if (schema == kPlanSchema) {
    const StudyPlan plan = read_plan(json);
    records.plans[plan.name] = plan;
  } else {
    bad_input("{}: {}; this trireme reads {}, {} and {}", path,
              schema.empty() ? "not a record (it has no schema)" : fmt::format("its schema is '{}'", schema),
              kRunSchema, kTrainSchema, kNetSchema);
  }
}

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add_folder(const std::string& folder, RecordSet& records) {
  std::vector<std::string> files;
  try {
    files = json_files(folder);
  } catch (const fs::filesystem_error& error) {
    bad_input("{}: cannot be searched for records: {}", folder, error.code().message());
  }
  for (const std::string& file : files) {
    try {
      add_file(file, records);
    } catch (const Error& error) {
      records.warnings.push_back(fmt::format("passed over {}", error.what()));
    }
  }
}

// The same file by two paths is one run.
std::vector<std::string> without_repeats(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  std::set<fs::path> seen;
  for (const std::string& path : paths) {
    std::error_code error;
    if (seen.insert(fs::weakly_canonical(path, error)).second) result.push_back(path);
  }
  return result;
}

}  // namespace

RecordSet load_records(const std::vector<std::string>& paths) {
  RecordSet records;
  for (const std::string& path : without_repeats(paths)) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      add_folder(path, records);
    } else if (fs::exists(path, error)) {
      add_file(path, records);
    } else {
      bad_input("{}: there is no such file or folder", path);
    }
  }
  if (records.empty()) {
    const std::string why = records.warnings.empty() ? "" : "; " + records.warnings.front();
    bad_input("no records in {}{}; `trireme bench --record FILE.json` and `trireme sweep` make some",
              fmt::join(paths, ", "), why);
  }
  return records;
}

}  // namespace trireme::report
