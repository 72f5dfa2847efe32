#include "trireme/report/facts.hpp"

#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/build_info.hpp"

namespace trireme::report {

Json to_json(const perf::Machine& machine) {
  Json caches = Json::array();
  for (const perf::Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"count", cache.count}});
  }
  return {{"host", machine.host},
          {"cpu", machine.cpu},
          {"os", machine.os},
          {"kernel", machine.kernel},
          {"packages", machine.packages},
          {"numa_nodes", machine.numa_nodes},
          {"cores", machine.cores},
          {"hardware_threads", machine.hardware_threads},
          {"usable_cores", machine.usable_cores},
          {"caches", std::move(caches)},
          {"memory", machine.memory_bytes},
          {"memory_available", machine.available_bytes},
          {"gpu", nullptr},
          {"instruction_sets", machine.instruction_sets},
          {"transparent_huge_pages", machine.transparent_huge_pages},
          {"load", machine.load},
          {"warnings", machine.warnings}};
}

Json build_json() {
  const perf::BuildInfo info = perf::build_info();
  Json libraries = Json::object();
  for (const auto& [name, version] : library_versions()) libraries[name] = version;
  for (const auto& [name, version] : comm::transport_versions()) libraries[name] = version;
  for (const auto& [name, version] : data::library_versions()) libraries[name] = version;
  for (const auto& [name, version] : info.libraries) libraries[name] = version;
  return {{"version", info.version},
          {"git", info.git},
          {"compiler", info.compiler},
          {"build_type", info.build_type},
          {"libraries", std::move(libraries)}};
}

}  // namespace trireme::report
