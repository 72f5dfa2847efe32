#include "trireme/train/facts.hpp"

#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/build_info.hpp"

namespace trireme::train {

Json build_facts() {
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

record::Machine this_machine() { return record::Machine(perf::read_machine()); }
record::Machine this_machine(double load) { return record::Machine(perf::read_machine(load)); }

}  // namespace trireme::train
