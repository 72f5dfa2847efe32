// A program as a text that people read: `trireme models --model X --plan`.
#pragma once

#include <string>

#include "trireme/plan/program.hpp"

namespace trireme::report {

// Each instruction with its kernel, layouts, bytes and flops; then the fusions, the reorders and the memory.
std::string describe(const Program& program);

}  // namespace trireme::report
