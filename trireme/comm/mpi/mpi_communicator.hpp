// A group of ranks over MPI. All groups of a process share one MPI communicator: ranks are translated, and the group's
// context is part of the tag. So making a group needs no MPI call, which would wait for other ranks without a timeout.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/comm/communicator.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"

namespace trireme::comm::mpi {

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// Serializes MPI calls if needed and turns error codes into Errors. One per process, shared by all communicators.
class MpiCalls {
 public:
  explicit MpiCalls(bool concurrent) : concurrent_(concurrent) {}

  // `describe` says what was being done; it is called only on failure.
  template <typename Call, typename Describe>
  void run(const Call& call, const Describe& describe) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!concurrent_) lock.lock();
    const int code = call();
    if (code != MPI_SUCCESS) fail(ErrorKind::failed, "{}: MPI says: {}", describe(), error_text(code));
  }

 private:
  const bool concurrent_;  // MPI_THREAD_MULTIPLE
  std::mutex mutex_;
};

struct MpiContext {  // shared by the groups of a process
  explicit MpiContext(const MpiOptions& given, bool concurrent) : options(given), calls(concurrent) {}

  MPI_Comm world = MPI_COMM_NULL;
  int highest_tag = 32767;  // guaranteed by every MPI
  MpiOptions options;
  MpiCalls calls;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiContext> mpi, std::vector<int> world_ranks, int rank, int context);

  std::string_view protocol() const override { return "mpi"; }
  std::string transport() const override { return transport_in_words(); }
  Presence presence(int rank) const override;
  bool has_library_all_reduce() const override { return true; }
  void prepare_library_all_reduce() override;
  void progress() override;
  using Communicator::introduce;

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override;
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override;
  void post_library_all_reduce(int slot, std::span<float> values, Reduction reduction) override;
  bool test(int slot) override;
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int context) override;

 private:
  struct State {
    std::vector<MPI_Request> parts;
    std::vector<MPI_Status> statuses;
    std::int64_t expected_bytes = -1;  // of a receive
    std::span<float> to_divide;        // for a mean by the library
  };
  // Cuts the data into parts and calls `post(part, request)` for each; once if the data is empty.
  template <typename Value, typename Post>
  State& post_parts(int slot, std::span<Value> data, const Post& post);
  int full_tag(int tag) const;
  void check_received(int slot, const State& state) const;

  std::shared_ptr<MpiContext> mpi_;
  std::vector<int> world_ranks_;
  int context_;
  std::vector<State> states_;         // by slot
  MPI_Comm library_ = MPI_COMM_NULL;  // just these ranks, for library reductions; null: not prepared
};

}  // namespace trireme::comm::mpi
