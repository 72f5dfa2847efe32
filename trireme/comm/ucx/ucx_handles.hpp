// RAII owners of UCX objects: a context is the library in this process, a worker a set of connections that one thread
// at a time drives.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::comm::ucx {

inline void check(ucs_status_t status, const char* doing) {
  if (status != UCS_OK) fail(ErrorKind::failed, "{}: UCX says: {}", doing, ucs_status_string(status));
}

class UcxContext {  // one per job and process, shared by all its communicators
 public:
  // Ranks of one node do without TCP, which UCX would listen with on all interfaces. The user's UCX_TLS has precedence.
  explicit UcxContext(bool is_one_node);
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  ucp_context_h handle() const { return context_; }

 private:
  ucp_context_h context_ = nullptr;
};

class UcxWorker {
 public:
  explicit UcxWorker(const UcxContext& context);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  std::string address() const;                                // for workers of other processes
  int event_descriptor() const { return event_descriptor_; }  // readable when there may be work, if armed

 private:
  ucp_worker_h worker_ = nullptr;
  int event_descriptor_ = -1;
};

// UCX's names of an endpoint's transports, each once: "posix", "cma", "tcp", "rc_mlx5".
std::vector<std::string> transports_of(ucp_ep_h endpoint);

}  // namespace trireme::comm::ucx
