// A program as a text that people read: `trireme models --model X --plan`.
#pragma once

#include <string>

#include "trireme/plan/schedule.hpp"

namespace trireme::report {

// Each instruction with its kernel, layouts, bytes and flops; then the fusions, the reorders and the memory.
std::string describe(const Program& program);
// What a step does beside computing: each bucket of gradients with the step that starts it, the one that waits for it,
// and what runs in between. Empty if there is nothing beside.
std::string describe(const Program& program, const Schedule& schedule);

}  // namespace trireme::report
