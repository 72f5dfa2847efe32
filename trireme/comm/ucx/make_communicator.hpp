// UCX as a transport for the data of a job whose ranks are joined already by another one, the control: RDMA if there
// is hardware, else shared memory inside a node and TCP between nodes. No UCX name appears outside this folder.
//
// UCX's own settings (UCX_TLS, UCX_NET_DEVICES, ...) are honoured.
#pragma once

#include <memory>
#include <string>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::ucx {

// The same ranks, with the same names, as those of `control`; collective over it. The control must live longer: it
// carries the addresses and knows who is gone (presence() asks it, from any thread). Its timeout is taken over.
std::unique_ptr<Communicator> make_communicator(Communicator& control);

// "1.13.1", say: of the library that is loaded.
std::string library_version();

}  // namespace trireme::comm::ucx
