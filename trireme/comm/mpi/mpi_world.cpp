#include "trireme/comm/mpi/mpi_world.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
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

// Returns the level of thread support. A program that uses MPI itself has started it already, and will end it.
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
         "this MPI may be called by one thread only; communication needs MPI_THREAD_SERIALIZED or more");
  }
  return level;
}

// MPI is finalised by leave() alone: finalising waits for all ranks, which is no good when one of them has failed.
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

}  // namespace

std::unique_ptr<World> join(const MpiOptions& options) { return std::make_unique<MpiWorld>(options); }

// The library's own text: "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\n...".
std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string_view all(text, length);
  const std::size_t digit = std::min(all.find_first_of("0123456789"), all.size());
  const std::size_t end = std::min(all.find_first_not_of("0123456789.", digit), all.size());
  const std::string_view name = all.starts_with("Open MPI") ? "Open MPI" : all.substr(0, all.find_first_of(" :\t\n"));
  return fmt::format("{} {}", name, all.substr(digit, end - digit));
}

}  // namespace trireme::comm::mpi
