// UCX as a data transport for ranks joined by another one, the control: RDMA if available, else shared memory and TCP.
// No UCX name appears outside this folder. UCX_TLS, UCX_NET_DEVICES and other settings of UCX apply.
#pragma once

#include <memory>
#include <string>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::ucx {

// The same ranks and names as `control`; collective over it. Inherits its timeout. The control must outlive the result:
// it carries the addresses and knows who is gone (presence() asks it, from any thread).
std::unique_ptr<Communicator> make_communicator(Communicator& control);

std::string library_version();  // of the loaded library: "1.13.1"

}  // namespace trireme::comm::ucx
