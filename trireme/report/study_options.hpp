// By which options the runs of a study are told apart. Used by make_studies() and by the comparison of two sides.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/record_set.hpp"

namespace trireme::report {

// Of an option as the command line has it; also "framework", "side", "machine", "hosts", "build". Null: the run does
// not say, or has none.
Json setting_of(const Run& run, const std::string& option);
// Of several options. Other frameworks lack what they do not have.
Json settings_of(const Run& run, const std::vector<std::string>& options);

// Options that make another configuration, where runs differ in them: neither how long to measure and where to keep
// notes, nor what a run has chosen by itself.
bool is_setting(const Run& run, const std::string& option);

// What the plan varies; whatever else separates runs that it takes for the same; machine, build, side and hosts where
// these differ. Runs are all measured, one at least. Warnings say what no plan has asked for.
std::vector<std::string> choose_options(const std::vector<Run>& runs, const PlanSummary* plan, const std::string& title,
                                        std::vector<std::string>& warnings);

}  // namespace trireme::report
