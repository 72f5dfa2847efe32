// Operations named for people, with what they compute and what was fused into them: "convolution+bias+relu",
// "max_pool".
#pragma once

#include <string>

#include "trireme/graph/operation.hpp"

namespace trireme {

std::string label_of(const Operation& operation);

}  // namespace trireme
