// The machine's processors as seen by hwloc. Used in perf/ and by cluster/host_check.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/perf/machine.hpp"

struct hwloc_topology;

namespace trireme::perf {

class Topology {
 public:
  Topology();

  int packages() const;
  int numa_nodes() const;
  int cores() const;
  int hardware_threads() const;
  std::vector<Cache> caches() const;  // data and unified ones, nearest first
  std::string library_version() const;

  std::vector<std::vector<int>> usable_cores() const;  // [core]: logical processors (OS index)

  // Restricts this thread, or all current threads of this process, to these processors. False if the system refuses.
  [[nodiscard]] bool limit_this_thread(const std::vector<int>& processors) const;
  [[nodiscard]] bool limit_this_process(const std::vector<int>& processors) const;

 private:
  struct Deleter {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Deleter> topology_;
};

}  // namespace trireme::perf
