#include "trireme/cluster/environment.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
namespace {

std::optional<int> number(const Lookup& lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > 1'000'000) {
    fail(ErrorKind::failed, "the environment has {}='{}', which is not the number a launcher sets; unset it", name,
         text);
  }
  return static_cast<int>(value);
}

// Who sets which names, the most telling first: srun's PMI plugins set some of the others' too.
struct Names {
  LauncherKind launcher;
  const char *rank, *size;
};
constexpr std::array kMpiNames{
    Names{LauncherKind::mpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // Open MPI
    Names{LauncherKind::mpirun, "PMI_RANK", "PMI_SIZE"},                          // MPICH
};

LaunchEnvironment detect_mpi_or_slurm(const Lookup& lookup) {
  // The shell of an allocation has SLURM_PROCID too; a step is what srun starts.
  const bool in_slurm_step = lookup("SLURM_STEP_ID") != nullptr && lookup("SLURM_PROCID") != nullptr;
  if (in_slurm_step && lookup("OMPI_COMM_WORLD_RANK") == nullptr) {
    const auto tasks = number(lookup, "SLURM_STEP_NUM_TASKS");
    return {.launcher = LauncherKind::srun,
            .mpi = lookup("PMIX_RANK") != nullptr || lookup("PMI_RANK") != nullptr,
            .rank = number(lookup, "SLURM_PROCID").value_or(0),
            .size = tasks ? *tasks : number(lookup, "SLURM_NTASKS").value_or(1)};
  }
  for (const Names& names : kMpiNames) {
    const auto rank = number(lookup, names.rank);
    const auto size = number(lookup, names.size);
    if (rank && size) return {.launcher = names.launcher, .mpi = true, .rank = *rank, .size = *size};
  }
  return {};
}

}  // namespace

std::string to_string(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::none:
      return "none";
    case LauncherKind::trireme:
      return "trireme launch";
    case LauncherKind::mpirun:
      return "mpirun";
    case LauncherKind::srun:
      return "srun";
  }
  return "none";
}

LaunchEnvironment detect_environment(const Lookup& lookup) {
  LaunchEnvironment found = detect_mpi_or_slurm(lookup);
  const auto index = number(lookup, kTaskIndexVariable);
  const auto count = number(lookup, kTaskCountVariable);
  if (index && count) {
    found.launcher = LauncherKind::trireme;
    found.rank = *index;
    found.size = *count;
  } else if (lookup(kLaunchVariable) != nullptr) {
    found.launcher = LauncherKind::trireme;
  }
  return found;
}

LaunchEnvironment detect_environment() {
  return detect_environment([](const char* name) { return std::getenv(name); });
}

bool shows_progress() {
  const char* told = std::getenv(kProgressVariable);
  return isatty(STDERR_FILENO) != 0 || (told != nullptr && std::string_view(told) == "terminal");
}

}  // namespace trireme::cluster
