// What users call the choices of the compiler.
#pragma once

#include <string_view>

#include "trireme/plan/program.hpp"

namespace trireme {

std::string_view to_string(DataFormat format);
std::string_view to_string(Recompute recompute);
std::string_view to_string(Precision precision);

}  // namespace trireme
