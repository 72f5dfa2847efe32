// One measured run, read from a record (trireme.run/1) of any origin. Made by record_set.hpp, grouped by studies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/report/run_record.hpp"

namespace trireme::report {

struct Run {
  std::string file;
  std::string study;          // name; empty: measured by itself
  std::string kind;           // the figure that the study asks for; empty: none
  std::string side;           // of a comparison of two sets of records; empty: there is no such comparison
  Json cell;                  // options that its study varies, by name; null: it has no study
  Json options;               // every option as resolved, by the name that the command line has
  std::optional<Json> given;  // names of the options that the user has set; nothing: an old record, the command says
  std::string framework = "trireme";
  std::string command;  // shell line that repeats it
  std::string started;
  std::string machine;   // identifies comparable machines in a line: host, CPU, cores
  std::string gpu;       // used by the run; empty: the CPU
  std::string hardware;  // CPU and cores
  std::string build;     // version and commit
  Json machine_facts, build_facts;
  std::vector<std::string> hosts;  // of its tasks, each once, in order; empty: unknown
  std::vector<std::string> machine_warnings;

  // Measurements; empty if it failed.
  std::optional<std::string> error;
  double images_per_second = 0;
  std::vector<double> speed_per_repeat;  // global images per second
  std::vector<Breakdown> breakdown;      // per rank
  std::vector<double> io_overhead_percent;
  std::optional<double> utilisation, overlap;
  bool interrupted = false;

  bool is_own() const { return framework == "trireme"; }
  bool is_measured() const { return !error && !interrupted; }
  double option_or(const char* name, double otherwise) const;
  std::string option_text(const char* name) const;  // empty: not set
  double effective_batch() const;                   // images per step of all workers; 0: unknown
};

Run read_run(const Json& record, const std::string& file);  // Error(bad_input) names the file if it is no such record

// One-line descriptions of machine and build; without facts, that they are unknown.
inline constexpr const char* kUnknownMachine = "unknown machine";
std::string host_line(const Json& machine);     // host, CPU, cores
std::string gpu_name(const Json& machine);      // used by the run; empty: none
std::string machine_line(const Json& machine);  // both
std::string build_line(const Json& build);
std::string command_text(const Json& arguments);  // as a shell line, the program without its folder

}  // namespace trireme::report
