// The folder of a study: its plan, a record for each run, their logs. It is all that a study leaves and all that it
// needs to go on after it was ended, however that happened: a run is done when its record is there, and a record is
// there whole or not at all. Held by one process at a time. Used by `sweep`, `tune` and `compare`;
// read by `report`.
//
//   plan.json                 the plan as resolved
//   runs/<cell>.r<k>.json     the records; what failed has one with "error"
//   logs/<cell>.r<k>.log      what the run said
//   journal.log               when which run was started and how it ended
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trireme/base/unique_fd.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

struct RunName {
  std::string cell;  // its slug
  int repeat = 1;    // from 1
};
std::string to_string(const RunName& run);  // "workers-2.r1"

// Of a folder that need not exist or be held. A run's file; what is in it, where that is JSON and whole.
std::filesystem::path run_file(const std::filesystem::path& folder, const RunName& run);
std::optional<Json> read_run(const std::filesystem::path& folder, const RunName& run);
// The plan, likewise; nothing where there is none. Error(bad_input) where something else has its name.
std::optional<Json> read_plan(const std::filesystem::path& folder);

class StudyFolder {
 public:
  // Makes the folder where there is none, and takes it: Error(bad_input) where another process has it, or where it is
  // the folder of something else. Removes what a killed process has left half done.
  explicit StudyFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return path_; }
  void write_plan(const Json& plan) const;
  void write_run(const RunName& run, const Json& record) const;
  void remove_run(const RunName& run) const;

  std::string log_file(const RunName& run) const;
  std::string scratch_folder() const { return (path_ / ".running").string(); }
  // A line with the time in front.
  void note(const std::string& text) const;

 private:
  std::filesystem::path path_;
  UniqueFd lock_, journal_;
};

// Error(bad_input) names what differs, where the cells of the plan that a folder has are not those of this one: its
// fixed and varied options, the order of these, constraints, the cores that they count with, and the frameworks that
// are compared. More repeats are no difference, nor are texts and the budget.
void check_same_study(const Json& kept, const Json& plan, const std::string& folder);

}  // namespace trireme::lab
