// The tables of options: the one place where an option of `bench` or `train` is declared. To add an option: a member in
// options.hpp, an entry here, and the code that uses it. Names, numbers allowed, help and role need nothing else.
#pragma once

#include "trireme/config/option.hpp"
#include "trireme/config/options.hpp"

namespace trireme::config {

const Table<train::StepOptions>& step_table();    // of bench and train
const Table<train::LoopOptions>& loop_table();    // of train
const Table<lab::TimingOptions>& timing_table();  // of bench

// In all tables; null: none has it.
const Option* find_option(std::string_view name);
// Settings that tell configurations apart first, in order; "workers" and "ps", which a job has, in their places.
std::vector<std::string> identity();

}  // namespace trireme::config
