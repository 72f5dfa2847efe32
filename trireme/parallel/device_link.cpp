#include "trireme/parallel/device_link.hpp"

#include <utility>

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
  for (const auto& [what, ended, is_due] : messages_) {
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
  const bool sends = rank == from;
  const int peer = sends ? to : from;
  Line& line = (sends ? outward_ : inward_)[peer];
  line.stream = device_.add_stream();
  line.group = device_.join_group(
      {.name = name, .rank = sends ? 0 : 1, .ranks = 2, .timeout_seconds = timeout_.count(), .waits_for = [=, this] {
         return first_waiting(sends, peer);
       }});
  // Now, because hosts wait for each other in the first transfer.
  const DeviceMemory byte = device_.allocate(1, "connecting stages");
  sends ? line.group->send(byte.at(0), 1, 1) : line.group->receive(byte.at(0), 1, 0);
  device_.synchronize();
  line.is_open = true;
}

std::string DeviceLink::first_waiting(bool sends, int peer) {
  if (!(sends ? outward_ : inward_).at(peer).is_open) return "connecting with " + workers_.name_of(peer);
  for (const auto& [what, ended, is_due] : messages_) {
    if (what.sends != sends || what.peer != peer || ended < 0 || device_.has_passed(ended)) continue;
    return fmt::format("{}: {} of {} with {}", workers_.name_of(workers_.rank()), sends ? "send" : "receive", what.name,
                       workers_.name_of(peer));
  }
  return "";
}

void DeviceLink::begin(int message) {
  auto& [what, ended, is_due] = messages_[message];
  Line& line = line_of(what);
  const int begun = device_.record_event();
  device_.set_stream(line.stream);
  device_.wait_event(begun);
  const auto bytes = std::ssize(what.memory);
  what.sends ? line.group->send(what.memory.data(), bytes, 1) : line.group->receive(what.memory.data(), bytes, 0);
  ended = device_.record_event();
  device_.set_stream(0);
  is_due = true;
}

bool DeviceLink::done(int message) {
  Message& done = messages_[message];
  if (std::exchange(done.is_due, false)) device_.wait_event(done.ended);
  return true;
}

}  // namespace trireme::parallel
