// Tags of the collectives' messages: one per kind, so that ranks that call different collectives do not take each
// other's messages but run into the timeout that names them.
#pragma once

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

enum CollectiveTag : int {
  kBarrierTag = Communicator::kTags,
  kBroadcastTag,
  kAllGatherTag,
  kRingTag,
  kHalvingDoublingTag,
  kTreeTag,
  kAddressTag,  // of transports that connect a group over another communicator
};

}  // namespace trireme::comm
