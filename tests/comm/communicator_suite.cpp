#include "communicator_suite.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>

#include "all_reduce_check.hpp"
#include "suite_check.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm::testkit {
namespace {

template <typename Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}
template <typename Value>
std::span<std::byte> bytes_of(std::vector<Value>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Numbers that tell where they come from.
std::vector<int> numbers(int seed, std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), seed * 1000003);
  return values;
}

int right_of(const Communicator& communicator) { return (communicator.rank() + 1) % communicator.size(); }
int left_of(const Communicator& communicator) {
  return (communicator.rank() + communicator.size() - 1) % communicator.size();
}

std::string name_of(const Member& member) {
  return member.name.empty() ? "rank " + std::to_string(member.world_rank) : member.name;
}

void members_are_known(Communicator& communicator) {
  expect(static_cast<int>(communicator.members().size()) == communicator.size(), "one member per rank");
  expect(communicator.self().pid == getpid(), "a rank knows its process");
  expect(communicator.self().world_rank == communicator.rank(), "ranks of the world are its members' ranks");
  expect(!communicator.self().host.empty(), "hosts have names");
  expect(communicator.members()[0].node == 0, "nodes count from 0");
}

void messages_of_all_sizes(Communicator& communicator) {
  for (const std::size_t count : {0, 1, 999, 250, 251, 100000}) {
    const auto sent = numbers(communicator.rank(), count);
    std::vector<int> received(count);
    const Transfer receive = communicator.start_receive(bytes_of(received), left_of(communicator), 1);
    communicator.send(bytes_of(sent), right_of(communicator), 1);
    communicator.wait(receive);
    expect(received == numbers(left_of(communicator), count), "what is received is what was sent");
    expect(communicator.done(receive), "a transfer that was waited for stays done");
  }
}

void order_is_kept(Communicator& communicator) {
  constexpr int kMessages = 100;
  std::vector<int> sent(kMessages), received(kMessages), other(1, communicator.rank()), other_received(1, -1);
  std::vector<Transfer> transfers;
  std::iota(sent.begin(), sent.end(), 0);
  for (int& value : received) {
    transfers.push_back(
        communicator.start_receive(std::as_writable_bytes(std::span(&value, 1)), left_of(communicator), 3));
  }
  for (const int& value : sent) {
    transfers.push_back(communicator.start_send(std::as_bytes(std::span(&value, 1)), right_of(communicator), 3));
  }
  // Another tag overtakes them.
  const Transfer overtaking = communicator.start_receive(bytes_of(other_received), left_of(communicator), 4);
  communicator.send(bytes_of(other), right_of(communicator), 4);
  communicator.wait(overtaking);
  for (std::size_t i = transfers.size(); i-- > 0;) communicator.wait(transfers[i]);
  expect(received == sent, "messages with one tag keep their order");
  expect(other_received[0] == left_of(communicator), "tags keep messages apart");
}

void wrong_use_is_refused(Communicator& communicator) {
  const std::string size = std::to_string(communicator.size() - 1);
  expect_contains(error_of([&] { communicator.start_send({}, communicator.size(), 0); }), "ranks are 0 to " + size);
  expect_contains(error_of([&] { communicator.start_receive({}, -1, 0); }), "ranks are 0 to " + size);
  expect_contains(error_of([&] { communicator.start_send({}, 0, -1); }), "tags are 0 to");
  expect_contains(error_of([&] { broadcast(communicator, {}, 99); }), "broadcast from rank 99");
}

void different_sizes_are_found_out(Communicator& communicator) {
  std::array<std::byte, 8> received{};
  const std::array<std::byte, 4> sent{};
  const Transfer receive = communicator.start_receive(received, left_of(communicator), 5);
  communicator.send(sent, right_of(communicator), 5);
  expect_contains(error_of([&] { communicator.wait(receive); }), "received 4 bytes");
}

void waiting_ends(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const auto timeout = communicator.timeout();
  std::array<std::byte, 3> data{};
  const Transfer receive = communicator.start_receive(data, left_of(communicator), 6);
  communicator.set_timeout(std::chrono::milliseconds(150));
  communicator.set_context("bucket 3 of step 17");
  const std::string message = error_of([&] { communicator.wait(receive); });
  communicator.set_timeout(timeout);
  communicator.set_context("");
  expect_contains(message, name_of(communicator.self()) + " (" + communicator.self().host + ")");
  expect_contains(message, name_of(communicator.members()[left_of(communicator)]) + " (");
  expect_contains(message, "receive of 3 B");
  expect_contains(message, "did not complete within");
  expect_contains(message, "bucket 3 of step 17");
  // Late, but it comes: nothing must stay behind.
  barrier(communicator);
  communicator.send(data, right_of(communicator), 6);
  communicator.wait(receive);
}

void broadcasts(Communicator& communicator) {
  for (int root = 0; root < communicator.size(); ++root) {
    for (const std::size_t count : {0, 1, 1000, 500000}) {
      auto values = numbers(communicator.rank(), count);
      broadcast(communicator, bytes_of(values), root);
      expect(values == numbers(root, count), "all have the root's values");
    }
  }
}

void gathers(Communicator& communicator) {
  const auto ranks = all_gather_value(communicator, communicator.rank());
  for (int rank = 0; rank < communicator.size(); ++rank) {
    expect(ranks[rank] == rank, "values come in the order of ranks");
  }
  const auto texts = all_gather_text(communicator, std::string(communicator.rank(), 'x'));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    expect(texts[rank].size() == static_cast<std::size_t>(rank), "texts keep their lengths");
  }
}

void reduces_by_every_algorithm(Communicator& communicator) {
  std::vector<Algorithm> algorithms{Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree,
                                    Algorithm::hierarchical};
  if (communicator.has_library_all_reduce()) algorithms.push_back(Algorithm::library);
  for (const Algorithm algorithm : algorithms) {
    const AllReduceOptions options{.algorithm = algorithm, .piece_bytes = 256};
    check_all_reduce(communicator, options, awkward_sizes(options.piece_bytes));
    check_all_reduce(communicator, options, awkward_sizes(options.piece_bytes), true);
  }
}

void reduces_in_16_bits(Communicator& communicator) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree, Algorithm::hierarchical}) {
    for (const Wire wire : {Wire::fp16, Wire::bf16}) {
      const AllReduceOptions options{.algorithm = algorithm, .wire = wire, .piece_bytes = 256};
      check_all_reduce(communicator, options, awkward_sizes(options.piece_bytes));
    }
  }
}

void splits(Communicator& communicator) {
  const int rank = communicator.rank();
  const auto half = communicator.split(rank % 2, -rank);
  expect(half->size() == (communicator.size() + 1 - rank % 2) / 2, "those with one color are together");
  expect(half->self().world_rank == rank, "a member keeps its name");
  expect(half->rank() == half->size() - 1 - rank / 2, "keys give the order");
  const auto lone = communicator.split(rank == 0 ? 0 : -1, 0);
  expect((lone != nullptr) == (rank == 0), "a negative color is in no group");

  // The same tag and the same peers, in two communicators at the same time.
  const auto copy = communicator.split(0, rank);
  const auto nested = copy->split(0, rank);
  const auto second = communicator.split(0, rank);
  std::array<int, 4> received{};
  std::vector<Transfer> receives;
  const std::array<Communicator*, 4> all{&communicator, copy.get(), nested.get(), second.get()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    receives.push_back(
        all[i]->start_receive(std::as_writable_bytes(std::span(&received[i], 1)), left_of(communicator), 7));
  }
  for (std::size_t i = all.size(); i-- > 0;) {
    const int value = static_cast<int>(i) + 1;
    all[i]->send(std::as_bytes(std::span(&value, 1)), right_of(communicator), 7);
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->wait(receives[i]);
  expect(received == std::array<int, 4>{1, 2, 3, 4}, "communicators keep their messages apart");

  check_all_reduce(*half, {.piece_bytes = 256}, {1, 1000, 20000});
}

void reduces_by_the_library_in_groups(Communicator& communicator) {
  if (!communicator.has_library_all_reduce()) return;
  const auto half = communicator.split(communicator.rank() % 2, communicator.rank());
  std::vector<float> value(1);
  expect_contains(error_of([&] { half->start_library_all_reduce(value, Reduction::sum); }), "was not prepared");
  check_all_reduce(*half, {.algorithm = Algorithm::library}, {1, 1000});
}

void memory_is_shared(Communicator& communicator) {
  const auto memory = communicator.share(100000);
  expect(memory != nullptr, "memory can be shared");
  expect(memory->ranks()[memory->local_rank()] == communicator.rank(), "a rank finds itself");
  expect(memory->data()[99999] == std::byte{0}, "it comes zeroed");
  barrier(communicator);
  memory->data()[99999] = static_cast<std::byte>(communicator.rank() + 1);
  barrier(communicator);
  for (int local = 0; local < memory->local_size(); ++local) {
    const int rank = memory->ranks()[local];
    expect(memory->data(local)[99999] == static_cast<std::byte>(rank + 1), "all see what a rank has written");
  }
  barrier(communicator);
  expect_contains(error_of([&] { communicator.share(0); }), "at least 1");
}

}  // namespace

std::vector<SuiteCase> communicator_suite() {
  return {{"MembersAreKnown", members_are_known},
          {"MessagesOfAllSizes", messages_of_all_sizes},
          {"OrderIsKept", order_is_kept},
          {"WrongUseIsRefused", wrong_use_is_refused},
          {"DifferentSizesAreFoundOut", different_sizes_are_found_out},
          {"WaitingEnds", waiting_ends},
          {"Broadcasts", broadcasts},
          {"Gathers", gathers},
          {"ReducesByEveryAlgorithm", reduces_by_every_algorithm},
          {"ReducesIn16Bits", reduces_in_16_bits},
          {"Splits", splits},
          {"ReducesByTheLibraryInGroups", reduces_by_the_library_in_groups},
          {"MemoryIsShared", memory_is_shared}};
}

}  // namespace trireme::comm::testkit
