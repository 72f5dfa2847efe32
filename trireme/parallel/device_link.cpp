#include "trireme/parallel/device_link.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::parallel {

void DeviceLink::open(std::vector<StageMessage> messages) {
  messages_.clear();
  for (StageMessage& message : messages) messages_.push_back({.what = std::move(message)});
  workers_.set_context("connecting the devices of stages");
  const auto workers = static_cast<std::size_t>(workers_.size());
  // By peer: what is sent there, then what is received from there. 0: nothing.
  std::vector<std::string> texts(2 * workers);
  for (const auto& [what, ended] : messages_) {
    texts[(what.sends ? 0 : workers) + static_cast<std::size_t>(what.peer)] +=
        fmt::format("{} {}\n", what.tag, what.name);
  }
  std::vector<std::uint64_t> own, all(texts.size() * workers);
  for (const std::string& text : texts) own.push_back(text.empty() ? 0 : hash_bytes(std::as_bytes(std::span(text))));
  comm::all_gather(workers_, std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  for (std::size_t from = 0; from < workers; ++from) {
    for (std::size_t to = 0; to < workers; ++to) {
      const std::uint64_t sent = all[from * texts.size() + to], received = all[to * texts.size() + workers + from];
      if (sent != received) {
        fail(ErrorKind::failed, "ranks {} and {} have the messages between them in different orders", from, to);
      }
      if (sent != 0) join(static_cast<int>(from), static_cast<int>(to));
    }
  }
}

void DeviceLink::join(int from, int to) {
  const int rank = workers_.rank();
  const std::string name = comm::broadcast_text(workers_, rank == from ? device_.name_group() : std::string(), from);
  if (rank != from && rank != to) return;
  auto group = device_.join_group(
      {.name = name, .rank = rank == from ? 0 : 1, .ranks = 2, .timeout_seconds = workers_.timeout().count()});
  // Now, because hosts wait for each other in the first transfer.
  const DeviceMemory byte = device_.allocate(1, "connecting stages");
  rank == from ? group->send(byte.at(0), 1, 1) : group->receive(byte.at(0), 1, 0);
  device_.synchronize();
  rank == from ? outward_[to] = std::move(group) : inward_[from] = std::move(group);
}

void DeviceLink::begin(int message) {
  auto& [what, ended] = messages_[message];
  const int begun = device_.record_event();
  device_.set_stream(what.sends ? device_.outward_stream() : device_.inward_stream());
  device_.wait_event(begun);
  const auto bytes = std::ssize(what.memory);
  if (what.sends) {
    outward_.at(what.peer)->send(what.memory.data(), bytes, 1);
  } else {
    inward_.at(what.peer)->receive(what.memory.data(), bytes, 0);
  }
  ended = device_.record_event();
  device_.set_stream(0);
}

bool DeviceLink::done(int message) {
  int& ended = messages_[message].ended;
  if (ended >= 0) device_.wait_event(ended);
  ended = -1;
  return true;
}

}  // namespace trireme::parallel
