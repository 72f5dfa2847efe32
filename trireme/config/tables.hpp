// The tables of options: the one place where an option of `bench`, `train`, `launch` or of a task in a cluster is
// declared. To add an option: a member in options.hpp or launch_options.hpp, an entry in tables.cpp or
// launch_tables.cpp, and the code that uses it. Names, numbers allowed, help and role need nothing else.
#pragma once

#include "trireme/config/launch_options.hpp"
#include "trireme/config/option.hpp"
#include "trireme/config/options.hpp"

namespace trireme::config {

// Groups of the help whose options go together in checks, too.
constexpr const char* kDataGroup = "Data";
constexpr const char* kServerGroup = "Parameter servers";
constexpr const char* kHostGroup = "Other hosts";                  // of no effect without other hosts
constexpr const char* kSubmitGroup = "Slurm jobs, with --submit";  // mostly sbatch's, by its names

const Table<train::StepOptions>& step_table();          // of bench and train
const Table<train::LoopOptions>& loop_table();          // of train
const Table<lab::TimingOptions>& timing_table();        // of bench
const Table<train::OutputOptions>& output_table();      // of bench and train
const Table<cluster::ClusterOptions>& cluster_table();  // of all commands that can be launched
const Table<cluster::LaunchOptions>& launch_table();    // of launch

// In all tables; null: none has it.
const Option* find_option(std::string_view name);
// Settings that tell configurations apart first, in order.
std::vector<std::string> identity();

}  // namespace trireme::config
