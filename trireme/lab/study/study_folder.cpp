#include "trireme/lab/study/study_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <span>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/lab/study/study_plan.hpp"

namespace trireme::lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlanFile = "plan.json";
constexpr std::array<const char*, 6> kOwnNames{kPlanFile, "runs", "logs", "journal.log", "lock", ".running"};

UniqueFd open_to_append(const fs::path& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.is_open()) bad_input("--out: cannot write '{}': {}", path.string(), std::strerror(errno));
  return file;
}

bool is_study_or_empty(const fs::path& folder) {
  if (fs::exists(folder / kPlanFile)) return true;
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(), [](const fs::directory_entry& entry) {
    return std::ranges::find(kOwnNames, entry.path().filename()) != kOwnNames.end();
  });
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    bad_input("--out: cannot create the folder '{}': {}", folder.string(), error ? error.message() : "it is a file");
  }
  if (!is_study_or_empty(folder)) {
    bad_input("--out: the folder '{}' has other files and no plan.json; give an empty or new folder", folder.string());
  }
}

// The file contains the owner's process id, for people.
UniqueFd take_lock(const fs::path& folder) {
  UniqueFd lock = open_to_append(folder / "lock");
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::getline(std::ifstream(folder / "lock"), holder);
    bad_input("--out: another study (process {}) is using the folder '{}'; wait for it or give another folder", holder,
              folder.string());
  }
  const std::string own = fmt::format("{}\n", getpid());
  if (ftruncate(lock.get(), 0) != 0 || !write_all(lock.get(), std::as_bytes(std::span(own)))) {
    fail(ErrorKind::failed, "cannot write '{}': {}", (folder / "lock").string(), std::strerror(errno));
  }
  return lock;
}

// Files left half-written by a killed process.
void remove_half_files(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "runs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
      if (entry.path().extension() == ".tmp") fs::remove(entry.path());
    }
  }
}

// What determines the cells, as path and value.
std::map<std::string, std::string> decisive_parts(const Json& plan) {
  std::map<std::string, std::string> parts;
  for (const char* key :
       {"name", "command", "cores", "hardware-threads", "fixed", "vary", "constraints", "frameworks", "trireme"}) {
    const Json value = plan.value(key, Json());
    if (!value.is_object()) {
      parts[key] = value.dump();
      continue;
    }
    for (const auto& [option, inner] : value.items()) parts[fmt::format("{}.{}", key, option)] = inner.dump();
  }
  return parts;
}

// Their order determines the cells' names.
std::vector<std::string> axis_names(const Json& plan) {
  std::vector<std::string> names;
  const Json axes = field(plan, {"vary"});
  for (const auto& [name, values] : axes.items()) names.push_back(name);
  return names;
}

}  // namespace

std::string to_string(const RunName& run) { return fmt::format("{}.r{}", run.cell, run.repeat); }

fs::path run_file(const fs::path& folder, const RunName& run) { return folder / "runs" / (to_string(run) + ".json"); }

std::optional<record::RunRecord> read_run(const fs::path& folder, const RunName& run) {
  if (std::error_code ignored; !fs::exists(run_file(folder, run), ignored)) return std::nullopt;
  try {
    record::RunRecord record;
    read(read_json(run_file(folder, run)), record);
    return record;
  } catch (const Error&) {  // a truncated record does not count: the run is repeated
    return std::nullopt;
  }
}

std::optional<Json> read_plan(const fs::path& folder) {
  const fs::path path = folder / kPlanFile;
  if (std::error_code ignored; !fs::exists(path, ignored)) return std::nullopt;
  try {
    Json plan = read_json(path);
    if (text_field(plan, {"schema"}) == kPlanSchema) return plan;
  } catch (const Error& error) {
    bad_input("--out: {}; restore the plan that the folder was started with, or give another folder", error.what());
  }
  bad_input("--out: {} is not a plan (schema {}); give another folder", path.string(), kPlanSchema);
}

StudyFolder::StudyFolder(fs::path folder) : path_(std::move(folder)) {
  make_folder(path_);
  read_plan(path_);  // touch nothing in a folder whose plan is not ours
  lock_ = take_lock(path_);
  fs::create_directories(path_ / "runs");
  fs::create_directories(path_ / "logs");
  remove_half_files(path_);
  journal_ = open_to_append(path_ / "journal.log");
}

void StudyFolder::write_plan(const Json& plan) const { write_json(plan, path_ / kPlanFile); }

void StudyFolder::write_run(const RunName& run, const record::RunRecord& record) const {
  write_json(to_json(record), run_file(path_, run));
}

void StudyFolder::remove_run(const RunName& run) const { fs::remove(run_file(path_, run)); }

std::string StudyFolder::log_file(const RunName& run) const { return path_ / "logs" / (to_string(run) + ".log"); }

void StudyFolder::note(const std::string& text) const {
  const std::string line = fmt::format("{} {}\n", record::rfc3339(std::chrono::system_clock::now()), text);
  append_whole(journal_.get(), std::as_bytes(std::span(line)), path_ / "journal.log");
}

void check_same_study(const Json& kept, const Json& plan, const std::string& folder) {
  const auto before = decisive_parts(kept), now = decisive_parts(plan);
  std::vector<std::string> differences;
  for (const auto& [key, value] : now) {
    const auto found = before.find(key);
    if (found == before.end())
      differences.push_back(fmt::format("{} is {} and was not set before", key, value));
    else if (found->second != value)
      differences.push_back(fmt::format("{} is {} and was {}", key, value, found->second));
  }
  for (const auto& [key, value] : before) {
    if (!now.contains(key)) differences.push_back(fmt::format("{} is not set and was {}", key, value));
  }
  if (differences.empty() && axis_names(kept) != axis_names(plan)) {
    differences.push_back(fmt::format("the order in vary is {} and was {}", fmt::join(axis_names(plan), ", "),
                                      fmt::join(axis_names(kept), ", ")));
  }
  const auto repeats = number_field(plan, {"repeats"}), repeats_before = number_field(kept, {"repeats"});
  if (repeats < repeats_before) {
    differences.push_back(fmt::format("repeats is {:g} and was {:g}; it can only grow", *repeats, *repeats_before));
  }
  if (differences.empty()) return;
  bad_input(
      "the folder '{}' has the results of another plan: {}; give another --out, or the plan it was started with, {}",
      folder, fmt::join(differences, "; "), (fs::path(folder) / kPlanFile).string());
}

}  // namespace trireme::lab
