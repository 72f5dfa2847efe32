#include "trireme/perf/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.hpp"

namespace trireme::perf {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

int count(hwloc_topology* topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

Bitmap bitmap_of(const std::vector<int>& processors) {
  Bitmap bitmap(hwloc_bitmap_alloc());
  for (const int processor : processors) hwloc_bitmap_set(bitmap.get(), static_cast<unsigned>(processor));
  return bitmap;
}

// The processors of this process: the union over its threads, limited by its cgroup's cpuset.
Bitmap usable_processors(hwloc_topology* topology) {
  Bitmap processors(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, processors.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(processors.get(), hwloc_topology_get_topology_cpuset(topology));
  }
  hwloc_bitmap_and(processors.get(), processors.get(), hwloc_topology_get_allowed_cpuset(topology));
  return processors;
}

}  // namespace

Topology::Topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) fail(ErrorKind::failed, "hwloc cannot start: {}", std::strerror(errno));
  topology_.reset(topology);
  if (hwloc_topology_load(topology) != 0) {
    fail(ErrorKind::failed, "hwloc cannot read this machine's processors: {}", std::strerror(errno));
  }
}

void Topology::Deleter::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

// Virtual machines and containers may hide packages and cores: processors then stand in for them.
int Topology::packages() const { return std::max(1, count(topology_.get(), HWLOC_OBJ_PACKAGE)); }

int Topology::numa_nodes() const { return std::max(1, count(topology_.get(), HWLOC_OBJ_NUMANODE)); }

int Topology::cores() const {
  const int cores = count(topology_.get(), HWLOC_OBJ_CORE);
  return cores > 0 ? cores : hardware_threads();
}

int Topology::hardware_threads() const { return std::max(1, count(topology_.get(), HWLOC_OBJ_PU)); }

std::vector<Cache> Topology::caches() const {
  std::vector<Cache> caches;
  int level = 1;
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    const hwloc_obj* first = hwloc_get_obj_by_type(topology_.get(), type, 0);
    if (first != nullptr) {
      caches.push_back({level, static_cast<std::int64_t>(first->attr->cache.size), count(topology_.get(), type)});
    }
    ++level;
  }
  return caches;
}

std::string Topology::library_version() const {
  const char* version = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology_.get()), "hwlocVersion");
  return version != nullptr ? version : "unknown";
}

std::vector<std::vector<int>> Topology::usable_cores() const {
  const Bitmap usable = usable_processors(topology_.get());
  std::vector<std::vector<int>> cores;
  const hwloc_obj* last_core = nullptr;
  for (int i = 0; i < hardware_threads(); ++i) {
    hwloc_obj* processor = hwloc_get_obj_by_type(topology_.get(), HWLOC_OBJ_PU, static_cast<unsigned>(i));
    if (processor == nullptr || hwloc_bitmap_isset(usable.get(), processor->os_index) == 0) continue;
    const hwloc_obj* core = hwloc_get_ancestor_obj_by_type(topology_.get(), HWLOC_OBJ_CORE, processor);
    if (core == nullptr || core != last_core) cores.emplace_back();
    cores.back().push_back(static_cast<int>(processor->os_index));
    last_core = core;
  }
  return cores;
}

bool Topology::limit_this_thread(const std::vector<int>& processors) const {
  return hwloc_set_cpubind(topology_.get(), bitmap_of(processors).get(), HWLOC_CPUBIND_THREAD) == 0;
}

bool Topology::limit_this_process(const std::vector<int>& processors) const {
  return hwloc_set_cpubind(topology_.get(), bitmap_of(processors).get(), HWLOC_CPUBIND_PROCESS) == 0;
}

}  // namespace trireme::perf
