// What an MPI library uses to carry messages, found out from its control variables (MPI_T) and its own description.
#include <fmt/ranges.h>
#include <mpi.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "trireme/comm/mpi/mpi_world.hpp"

namespace trireme::comm::mpi {
namespace {

// The names of all control variables that exist now.
std::set<std::string> control_variables() {
  std::set<std::string> names;
  int level = 0;
  int count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return names;
  if (MPI_T_cvar_get_num(&count) != MPI_SUCCESS) count = 0;
  for (int i = 0; i < count; ++i) {
    std::array<char, 256> name{};
    auto bytes = static_cast<int>(name.size());
    int verbosity = 0;
    int binding = 0;
    int scope = 0;
    int no_description = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    // Variables of components that were not chosen are gone, and asking for them fails.
    if (MPI_T_cvar_get_info(i, name.data(), &bytes, &verbosity, &type, nullptr, nullptr, &no_description, &binding,
                            &scope) == MPI_SUCCESS) {
      names.emplace(name.data());
    }
  }
  MPI_T_finalize();
  return names;
}

// Open MPI names variables after their components: "btl_tcp_links" of the component tcp of the framework btl. Those of
// the framework itself are called "btl_base_...".
std::set<std::string> components(const std::set<std::string>& variables, std::string_view framework) {
  const std::string prefix = fmt::format("{}_", framework);
  std::set<std::string> found;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(prefix)) continue;
    const std::string component = variable.substr(prefix.size(), variable.find('_', prefix.size()) - prefix.size());
    if (component != "base") found.insert(component);
  }
  return found;
}

// MPICH's own text has a line "MPICH Device:\tch4:ofi".
std::string mpich_device() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view all(text.data(), length);
  constexpr std::string_view kDevice = "Device:";
  const std::size_t at = all.find(kDevice);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = all.find_first_not_of(" \t", at + kDevice.size());
  if (begin == std::string_view::npos) return "";
  return std::string(all.substr(begin, all.find_first_of(" \t\n", begin) - begin));
}

}  // namespace

std::string transport_in_words() {
  std::string words = library_version();
  if (const std::string device = mpich_device(); !device.empty()) return fmt::format("{}, {}", words, device);
  const auto variables = control_variables();
  const auto ways = components(variables, "pml");  // the way of point-to-point messages; one is chosen
  if (!ways.empty()) words += fmt::format(", pml {}", fmt::join(ways, "+"));
  if (ways.contains("ob1")) words += fmt::format(", btl {}", fmt::join(components(variables, "btl"), "+"));
  return words;
}

}  // namespace trireme::comm::mpi
