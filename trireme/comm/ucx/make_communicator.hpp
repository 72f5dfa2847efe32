// UCX as a transport for the data of a job whose ranks are joined already by another one, the control: RDMA where there
// is hardware, else shared memory inside a node and TCP between nodes. No UCX name appears outside this folder.
//
// UCX's own settings (UCX_TLS, UCX_NET_DEVICES, ...) are honoured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::ucx {

struct UcxOptions {
  // Sends of so many bytes and more from memory that allocate() gave are fetched by a receiver that sees this memory.
  // Below, one message is less work than announcing, fetching and confirming. Tests make it small.
  std::int64_t fetched_bytes = 64 * 1024;
};

// The same ranks, with the same names, as those of `control`; collective over it. The control must live longer: it
// carries the addresses and knows who is gone (presence() asks it, from any thread). Its timeout is taken over.
std::unique_ptr<Communicator> make_communicator(Communicator& control, const UcxOptions& options = {});

// "1.13.1", say: of the library that is loaded.
std::string library_version();

}  // namespace trireme::comm::ucx
