// The oracle for all tests: plain loops over plain layouts, summing in float64.
#pragma once

#include <memory>

#include "trireme/plan/backend.hpp"

namespace trireme::reference {

std::unique_ptr<Backend> make_backend();

}  // namespace trireme::reference
