// UCX's objects with owners, and its status codes turned into errors. A context is the library in this process, with
// the memory that it has allocated; a worker is a set of connections that one thread at a time drives.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::comm::ucx {

inline void check(ucs_status_t status, const char* doing) {
  if (status != UCS_OK) fail(ErrorKind::failed, "{}: UCX says: {}", doing, ucs_status_string(status));
}

// Memory that others may read, as they have to be told of it.
struct Region {
  static constexpr std::size_t kMostKeyBytes = 192;
  std::uint32_t id = 0;  // no other region of this process has had it
  std::uint32_t key_bytes = 0;
  std::array<std::byte, kMostKeyBytes> key{};
};

// One per job and process, shared by all its communicators.
class UcxContext : public std::enable_shared_from_this<UcxContext> {
 public:
  UcxContext();
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  ucp_context_h handle() const { return context_; }

  // Memory that processes of this machine can map and network cards know, zeroed; nullptr where there is none. It is
  // given back with the last pointer to it.
  std::shared_ptr<void> allocate(std::int64_t bytes);
  // The region that all of the data lies in.
  std::optional<Region> region_of(std::span<const std::byte> data) const;

 private:
  struct Mapped {
    std::size_t bytes = 0;
    ucp_mem_h handle = nullptr;
    Region region;
  };
  void release(std::byte* begin);

  ucp_context_h context_ = nullptr;
  mutable std::mutex mutex_;  // communicators are used by several threads
  std::map<const std::byte*, Mapped> mapped_;
  std::uint32_t regions_ = 0;
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
