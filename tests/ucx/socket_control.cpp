#include "socket_control.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "trireme/base/error.hpp"

namespace trireme::comm::testkit {
namespace {

struct Header {
  int tag = 0;
  std::size_t bytes = 0;
};

void write_all(int socket, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t written = send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (written <= 0) fail(ErrorKind::failed, "a control socket is closed");
    data = data.subspan(written);
  }
}

}  // namespace

SocketControl::SocketControl(int rank, std::vector<int> sockets, const std::atomic<Presence>* presences)
    : Communicator(rank, static_cast<int>(sockets.size())), sockets_(std::move(sockets)), presences_(presences) {}

void SocketControl::post_send(int slot, std::span<const std::byte> data, int to, int tag) {
  state_at(states_, slot) = {};
  if (to == rank()) {
    arrived_.push_back({to, tag, {data.begin(), data.end()}});
    return;
  }
  const Header header{tag, data.size()};
  write_all(sockets_[to], std::as_bytes(std::span(&header, 1)));
  write_all(sockets_[to], data);
}

void SocketControl::post_receive(int slot, std::span<std::byte> data, int from, int tag) {
  state_at(states_, slot) = {from, tag, data};
}

bool SocketControl::test(int slot) {
  const State& state = states_[slot];
  if (state.from < 0) return true;
  take_arrived();
  const auto found = std::find_if(arrived_.begin(), arrived_.end(), [&](const Message& message) {
    return message.from == state.from && message.tag == state.tag;
  });
  if (found == arrived_.end()) return false;
  if (found->data.size() != state.data.size()) fail(ErrorKind::failed, "{}: sizes differ", describe(slot));
  std::copy(found->data.begin(), found->data.end(), state.data.begin());
  arrived_.erase(found);
  return true;
}

void SocketControl::take_arrived() {
  for (int from = 0; from < size(); ++from) {
    const int socket = sockets_[from];
    Header header;
    if (from == rank() || recv(socket, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK) < ssize_t{sizeof(header)}) {
      continue;
    }
    recv(socket, &header, sizeof(header), MSG_WAITALL);
    std::vector<std::byte> data(header.bytes);
    if (header.bytes > 0) recv(socket, data.data(), data.size(), MSG_WAITALL);
    arrived_.push_back({from, header.tag, std::move(data)});
  }
}

std::unique_ptr<Communicator> SocketControl::make_group(const std::vector<int>&, int) {
  fail(ErrorKind::unavailable, "this control has no groups");
}

}  // namespace trireme::comm::testkit
