// A program as readable text: `trireme models --model X --plan`.
#pragma once

#include <string>

#include "trireme/plan/schedule.hpp"

namespace trireme::report {

// Each instruction with kernel, layouts, bytes and flops; then fusions, reorders and memory.
std::string describe(const Program& program);
// What runs beside compute: each bucket with the steps that start and await it, and what runs in between; or empty.
std::string describe(const Program& program, const Schedule& schedule);

}  // namespace trireme::report
