// The options that distinguish the runs of a study. Used by make_studies() and by the comparison of two sides.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/record_set.hpp"

namespace trireme::report {

// By command-line name; also "framework", "side", "machine", "hosts", "build". Null: unknown or not set.
Json setting_of(const Run& run, const std::string& option);
// Of several options. Other frameworks lack options they do not have.
Json settings_of(const Run& run, const std::vector<std::string>& options);

// Whether it makes another configuration: not measuring time, output paths, or what a run chose automatically.
bool is_setting(const Run& run, const std::string& option);

// The plan's varied options, whatever else separates runs it considers equal, and machine, build, side and hosts if
// they differ. Runs: at least one, all measured. Warnings name what no plan asked for.
std::vector<std::string> choose_options(const std::vector<Run>& runs, const PlanSummary* plan, const std::string& title,
                                        std::vector<std::string>& warnings);

}  // namespace trireme::report
