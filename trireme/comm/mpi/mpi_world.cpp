#include "trireme/comm/mpi/mpi_world.hpp"

#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string_view>

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/host.hpp"
#include "trireme/comm/mpi/mpi_communicator.hpp"

namespace trireme::comm::mpi {
namespace {

void check(int code, const char* doing) {
  if (code != MPI_SUCCESS) fail(ErrorKind::failed, "{}: MPI says: {}", doing, error_text(code));
}

// Returns the thread support level. A program that uses MPI itself has already started it and will end it.
int start_mpi(bool& started_here) {
  int initialised = 0;
  check(MPI_Initialized(&initialised), "asking whether MPI is started");
  int level = MPI_THREAD_SINGLE;
  started_here = initialised == 0;
  if (started_here) {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "starting MPI");
  } else {
    check(MPI_Query_thread(&level), "asking for MPI's thread support");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    fail(ErrorKind::unavailable,
         "this MPI can be called by only one thread; communication needs MPI_THREAD_SERIALIZED or more");
  }
  return level;
}

// Only leave() finalizes MPI: that waits for all ranks, which is wrong if one has failed.
class MpiWorld : public World {
 public:
  explicit MpiWorld(const MpiOptions& options) {
    const int level = start_mpi(started_here_);
    mpi_ = std::make_shared<MpiContext>(options, level == MPI_THREAD_MULTIPLE);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi_->world), "duplicating MPI_COMM_WORLD");
    check(MPI_Comm_set_errhandler(mpi_->world, MPI_ERRORS_RETURN), "setting MPI's error handler");
    int rank = 0;
    int size = 1;
    check(MPI_Comm_rank(mpi_->world, &rank), "asking for the rank");
    check(MPI_Comm_size(mpi_->world, &size), "asking for the number of ranks");
    void* highest_tag = nullptr;
    int known = 0;
    check(MPI_Comm_get_attr(mpi_->world, MPI_TAG_UB, &highest_tag, &known), "asking for the highest tag");
    if (known != 0) mpi_->highest_tag = *static_cast<int*>(highest_tag);
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    communicator_ = std::make_unique<MpiCommunicator>(mpi_, std::move(ranks), rank, 0);
    communicator_->introduce(host_name(), node_key());
  }

  Communicator& communicator() override { return *communicator_; }

  void leave() override {
    barrier(*communicator_);
    check(MPI_Comm_free(&mpi_->world), "freeing a communicator");
    if (started_here_) check(MPI_Finalize(), "ending MPI");
  }

 private:
  bool started_here_ = false;
  std::shared_ptr<MpiContext> mpi_;
  std::unique_ptr<MpiCommunicator> communicator_;
};

// The names of all current control variables.
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
    // Variables of components that were not selected are gone; querying them fails.
    if (MPI_T_cvar_get_info(i, name.data(), &bytes, &verbosity, &type, nullptr, nullptr, &no_description, &binding,
                            &scope) == MPI_SUCCESS) {
      names.emplace(name.data());
    }
  }
  MPI_T_finalize();
  return names;
}

// Open MPI's "btl_tcp_links" belongs to component tcp of framework btl, "btl_base_..." to btl itself.
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

// The library's own text: "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\n...".
std::string library_text() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

// MPICH's has a line "MPICH Device:\tch4:ofi".
std::string mpich_device() {
  const std::string all = library_text();
  constexpr std::string_view kDevice = "Device:";
  const std::size_t at = all.find(kDevice);
  if (at == std::string::npos) return "";
  const std::size_t begin = all.find_first_not_of(" \t", at + kDevice.size());
  if (begin == std::string::npos) return "";
  return all.substr(begin, all.find_first_of(" \t\n", begin) - begin);
}

}  // namespace

std::unique_ptr<World> join(const MpiOptions& options) { return std::make_unique<MpiWorld>(options); }

std::string library_version() {
  const std::string all = library_text();
  const std::size_t digit = std::min(all.find_first_of("0123456789"), all.size());
  const std::size_t end = std::min(all.find_first_not_of("0123456789.", digit), all.size());
  const std::string name = all.starts_with("Open MPI") ? "Open MPI" : all.substr(0, all.find_first_of(" :\t\n"));
  return fmt::format("{} {}", name, all.substr(digit, end - digit));
}

// From the library's control variables (MPI_T) and its own description.
std::string transport_in_words() {
  std::string words = library_version();
  if (const std::string device = mpich_device(); !device.empty()) return fmt::format("{}, {}", words, device);
  const auto variables = control_variables();
  const auto ways = components(variables, "pml");  // carries point-to-point messages; one is chosen
  if (!ways.empty()) words += fmt::format(", pml {}", fmt::join(ways, "+"));
  if (ways.contains("ob1")) words += fmt::format(", btl {}", fmt::join(components(variables, "btl"), "+"));
  return words;
}

}  // namespace trireme::comm::mpi
