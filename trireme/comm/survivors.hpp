// How ranks that can do without a lost one agree on who is left: presence() alone will not do, because they notice a
// loss at different moments.
#pragma once

#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

// Called by all ranks that are there. Rank 0 waits until each of the others has come here or is lost, and tells those
// who came who they are: the result, with rank 0 in front. Error(failed) when rank 0 is lost. For a transport that
// survives the loss of a rank.
std::vector<int> agree_on_survivors(Communicator& communicator);

}  // namespace trireme::comm
