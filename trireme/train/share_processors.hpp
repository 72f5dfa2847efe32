// Processors for workers that were started by a launcher that does not care about them. Used by Worker before it
// plans its threads.
#pragma once

#include <string>

#include "trireme/comm/communicator.hpp"

namespace trireme::train {

// Collective. Where workers of one machine may all run on the same processors, each binds itself to a share of its own.
// Returns a warning where that is impossible, because there are more workers than cores: they share what there is.
std::string share_processors(comm::Communicator& workers);

}  // namespace trireme::train
