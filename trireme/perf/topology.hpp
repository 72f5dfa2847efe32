// The machine's processors as hwloc sees them, owned for as long as it is asked. Made by read_machine(), plan_threads()
// and apply(); nobody outside perf/ needs it.
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

  // Logical processors (OS index) that this process may run on, grouped by core.
  std::vector<std::vector<int>> usable_cores() const;

  // Lets this thread, or all threads that this process has now, run on these processors only. False where the system
  // refuses.
  [[nodiscard]] bool limit_this_thread(const std::vector<int>& processors) const;
  [[nodiscard]] bool limit_this_process(const std::vector<int>& processors) const;

 private:
  struct Deleter {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Deleter> topology_;
};

}  // namespace trireme::perf
