// UCX's objects with owners, and its status codes turned into errors. A context is the library in this process; a
// worker is a set of connections that one thread at a time drives.
#pragma once

#include <ucp/api/ucp.h>

#include <string>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::comm::ucx {

inline void check(ucs_status_t status, const char* doing) {
  if (status != UCS_OK) fail(ErrorKind::failed, "{}: UCX says: {}", doing, ucs_status_string(status));
}

// One per job and process, shared by all its communicators.
class UcxContext {
 public:
  // Ranks of one node need no TCP, by which UCX would listen on all interfaces; the user's UCX_TLS is the last word.
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
  // By which workers of other processes connect to this one.
  std::string address() const;
  // Becomes readable when there may be something to do, if the worker was armed.
  int event_descriptor() const { return event_descriptor_; }

 private:
  ucp_worker_h worker_ = nullptr;
  int event_descriptor_ = -1;
};

// The transports that an endpoint goes by, by UCX's names: "posix", "cma", "tcp", "rc_mlx5"; each once.
std::vector<std::string> transports_of(ucp_ep_h endpoint);

}  // namespace trireme::comm::ucx
