#include "trireme/comm/mpi/mpi_communicator.hpp"

#include <algorithm>
#include <cstdlib>

#include "trireme/comm/arithmetic.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm::mpi {
namespace {

constexpr int kTagsPerContext = Communicator::kTags + Communicator::kCollectiveTags;

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiContext> mpi, std::vector<int> world_ranks, int rank, int context)
    : Communicator(rank, static_cast<int>(world_ranks.size())),
      mpi_(std::move(mpi)),
      world_ranks_(std::move(world_ranks)),
      context_(context) {
  if (context_ == 0) library_ = mpi_->world;
  if (context_ >= mpi_->highest_tag / kTagsPerContext) {
    fail(ErrorKind::failed, "communicator number {}: this MPI has tags for only {} communicators", context_,
         mpi_->highest_tag / kTagsPerContext);
  }
}

Presence MpiCommunicator::presence(int rank) const {
  const auto& source = mpi_->options.presence;
  return source ? source(world_ranks_[rank]) : Presence::here;
}

// Any call that probes for messages drives MPI.
void MpiCommunicator::progress() {
  int found = 0;
  mpi_->calls.run([&] { return MPI_Iprobe(MPI_ANY_SOURCE, full_tag(0), mpi_->world, &found, MPI_STATUS_IGNORE); },
                  [&] { return name_of(rank()) + ": looking for messages"; });
}

template <typename Value, typename Post>
MpiCommunicator::State& MpiCommunicator::post_parts(int slot, std::span<Value> data, const Post& post) {
  const auto most = static_cast<std::size_t>(mpi_->options.part_bytes) / sizeof(Value);
  const std::size_t parts = std::max<std::size_t>((data.size() + most - 1) / most, 1);
  State& state = state_at(states_, slot);
  state.parts.assign(parts, MPI_REQUEST_NULL);
  state.statuses.resize(parts);
  state.expected_bytes = -1;
  state.to_divide = {};
  for (std::size_t i = 0; i < parts; ++i) {
    const std::span<Value> part = data.subspan(i * most, std::min(most, data.size() - i * most));
    mpi_->calls.run([&] { return post(part, &state.parts[i]); }, [&] { return describe(slot); });
  }
  return state;
}

void MpiCommunicator::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  post_parts(slot, data, [&](auto part, MPI_Request* request) {
    return MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, world_ranks_[to], full_tag(tag), mpi_->world,
                     request);
  });
}

void MpiCommunicator::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  State& state = post_parts(slot, data, [&](auto part, MPI_Request* request) {
    return MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, world_ranks_[from], full_tag(tag),
                     mpi_->world, request);
  });
  state.expected_bytes = std::ssize(data);
}

// Only groups that reduce by library get an MPI communicator. It is never freed, because that would be collective.
void MpiCommunicator::prepare_library_all_reduce() {
  if (library_ != MPI_COMM_NULL) return;
  barrier(*this);  // MPI would wait forever for a missing rank
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  const auto doing = [&] { return name_of(rank()) + ": making a communicator for the library's all-reduce"; };
  mpi_->calls.run([&] { return MPI_Comm_group(mpi_->world, &all); }, doing);
  mpi_->calls.run([&] { return MPI_Group_incl(all, size(), world_ranks_.data(), &group); }, doing);
  mpi_->calls.run([&] { return MPI_Comm_create_group(mpi_->world, group, full_tag(0), &library_); }, doing);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
}

void MpiCommunicator::post_library_all_reduce(int slot, std::span<float> values, Reduction reduction) {
  if (library_ == MPI_COMM_NULL) fail(ErrorKind::failed, "{}: it was not prepared", describe(slot));
  State& state = post_parts(slot, values, [&](auto part, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                          reduction == Reduction::max ? MPI_MAX : MPI_SUM, library_, request);
  });
  if (reduction == Reduction::mean) state.to_divide = values;
}

bool MpiCommunicator::test(int slot) {
  State& state = states_[slot];
  int complete = 0;
  mpi_->calls.run(
      [&] {
        const int code =
            MPI_Testall(static_cast<int>(state.parts.size()), state.parts.data(), &complete, state.statuses.data());
        if (code != MPI_ERR_IN_STATUS) return code;
        // Error codes are in the parts' statuses; pending parts are not errors.
        for (const MPI_Status& status : state.statuses) {
          if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) return status.MPI_ERROR;
        }
        return code;
      },
      [&] { return describe(slot); });
  if (complete == 0) return false;
  if (state.expected_bytes >= 0) check_received(slot, state);
  finish_reduction(state.to_divide, Reduction::mean, size());
  return true;
}

std::unique_ptr<Communicator> MpiCommunicator::make_group(const std::vector<int>& ranks, int context) {
  std::vector<int> world_ranks;
  for (const int rank : ranks) world_ranks.push_back(world_ranks_[rank]);
  const auto own = std::find(ranks.begin(), ranks.end(), rank());
  return std::make_unique<MpiCommunicator>(mpi_, std::move(world_ranks), static_cast<int>(own - ranks.begin()),
                                           context);
}

int MpiCommunicator::full_tag(int tag) const { return context_ * kTagsPerContext + tag; }

void MpiCommunicator::check_received(int slot, const State& state) const {
  std::int64_t received = 0;
  for (const MPI_Status& status : state.statuses) {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    received += bytes;
  }
  if (received == state.expected_bytes) return;
  fail(ErrorKind::failed, "{}: received {} bytes; the sizes of send and receive must be equal", describe(slot),
       received);
}

}  // namespace trireme::comm::mpi
