// The folder of a study: its plan, a record per run, their logs. It is everything a study leaves and needs to resume,
// however it ended: a run is done if its record exists, and records are written atomically. Locked by one process at a
// time. Used by `sweep`, `tune` and `compare`; read by `report`.
//
//   plan.json                 the resolved plan
//   runs/<cell>.r<k>.json     the records; failures have "error"
//   logs/<cell>.r<k>.log      output of the run
//   journal.log               start and end of every run
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trireme/base/unique_fd.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

struct RunName {
  std::string cell;  // slug
  int repeat = 1;    // from 1
};
std::string to_string(const RunName& run);  // "workers-2.r1"

// For a folder that need not exist or be locked: a run's file, and its record if that is complete.
std::filesystem::path run_file(const std::filesystem::path& folder, const RunName& run);
std::optional<record::RunRecord> read_run(const std::filesystem::path& folder, const RunName& run);
// The plan, likewise; nothing if there is none. Error(bad_input) if something else has its name.
std::optional<Json> read_plan(const std::filesystem::path& folder);

class StudyFolder {
 public:
  // Creates the folder if missing and locks it. Error(bad_input) if another process holds it or it is not a study's.
  // Removes half-written files of a killed process.
  explicit StudyFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return path_; }
  void write_plan(const Json& plan) const;
  void write_run(const RunName& run, const record::RunRecord& record) const;
  void remove_run(const RunName& run) const;

  std::string log_file(const RunName& run) const;
  std::string scratch_folder() const { return (path_ / ".running").string(); }
  void note(const std::string& text) const;  // with the time

 private:
  std::filesystem::path path_;
  UniqueFd lock_, journal_;
};

// Error(bad_input) names the difference if the folder's plan has other cells: fixed and varied options, their order,
// constraints, core counts in them, and frameworks. Repeats may grow; texts and budget may differ.
void check_same_study(const Json& kept, const Json& plan, const std::string& folder);

}  // namespace trireme::lab
