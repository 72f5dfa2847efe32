#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/unique_fd.hpp"
#include "trireme/lab/net/network_test.hpp"

namespace trireme::lab {
namespace {

constexpr int kDataTag = 0, kInvitationTag = 1;

class TransportLink : public NetworkLink {
 public:
  TransportLink(comm::Communicator& communicator, int peer) : communicator_(communicator), peer_(peer) {}

  void send(std::span<const std::byte> data, std::size_t messages) override {
    const std::size_t bytes = data.size() / messages;
    for (std::size_t i = 0; i < messages; ++i) {
      transfers_.push_back(communicator_.start_send(data.subspan(i * bytes, bytes), peer_, kDataTag));
    }
    wait();
  }

  void receive(std::span<std::byte> data, std::size_t messages) override {
    const std::size_t bytes = data.size() / messages;
    for (std::size_t i = 0; i < messages; ++i) {
      transfers_.push_back(communicator_.start_receive(data.subspan(i * bytes, bytes), peer_, kDataTag));
    }
    wait();
  }

  void exchange(std::span<const std::byte> out, std::span<std::byte> in) override {
    transfers_.push_back(communicator_.start_receive(in, peer_, kDataTag));
    transfers_.push_back(communicator_.start_send(out, peer_, kDataTag));
    wait();
  }

 private:
  void wait() {
    for (const comm::Transfer transfer : transfers_) communicator_.wait(transfer);
    transfers_.clear();
  }

  comm::Communicator& communicator_;
  int peer_;
  std::vector<comm::Transfer> transfers_;
};

// Sent by the listener. The connecting rank must present the number, as anyone could find the port.
struct Invitation {
  std::uint32_t port = 0;
  std::uint32_t padding = 0;
  std::array<std::uint64_t, 2> number{};
};

[[noreturn]] void socket_failed(const char* what, int code) {
  if (code == EAGAIN || code == EWOULDBLOCK) fail(ErrorKind::failed, "TCP socket: {} did not complete in time", what);
  fail(ErrorKind::failed, "TCP socket: {}: {}", what, std::strerror(code));
}

void check(int result, const char* what) {
  if (result < 0) socket_failed(what, errno);
}

timeval to_timeval(std::chrono::duration<double> time) {
  const double seconds = std::floor(time.count());
  return {.tv_sec = static_cast<time_t>(seconds), .tv_usec = static_cast<suseconds_t>((time.count() - seconds) * 1e6)};
}

void set_options(int socket, std::chrono::duration<double> timeout) {
  const int on = 1;
  const timeval time = to_timeval(timeout);
  check(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  check(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time), "SO_RCVTIMEO");
  check(setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time), "SO_SNDTIMEO");
}

void wait_for(int socket, short events, std::chrono::duration<double> timeout, const char* what) {
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, static_cast<int>(timeout.count() * 1e3));
  } while (ready < 0 && errno == EINTR);
  check(ready, what);
  if (ready == 0) socket_failed(what, EAGAIN);
}

// Blocking calls with a timeout, as in the simplest program.
class SocketLink : public NetworkLink {
 public:
  SocketLink(UniqueFd socket, std::chrono::duration<double> timeout) : socket_(std::move(socket)), timeout_(timeout) {
    set_options(socket_.get(), timeout);
  }

  void send(std::span<const std::byte> data, std::size_t messages) override {
    const std::size_t bytes = data.size() / messages;
    for (std::size_t i = 0; i < messages; ++i) {
      for (auto rest = data.subspan(i * bytes, bytes); !rest.empty();) rest = rest.subspan(send_some(rest, 0));
    }
  }

  void receive(std::span<std::byte> data, std::size_t) override {
    while (!data.empty()) data = data.subspan(receive_some(data, 0));
  }

  void exchange(std::span<const std::byte> out, std::span<std::byte> in) override {
    while (!out.empty() || !in.empty()) {
      std::size_t moved = 0;
      if (!out.empty()) moved += step(out, send_some(out, MSG_DONTWAIT));
      if (!in.empty()) moved += step(in, receive_some(in, MSG_DONTWAIT));
      if (moved > 0) continue;
      const auto events = static_cast<short>((out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN));
      wait_for(socket_.get(), events, timeout_, "exchange");
    }
  }

 private:
  template <typename Span>
  static std::size_t step(Span& span, std::size_t count) {
    span = span.subspan(count);
    return count;
  }

  std::size_t send_some(std::span<const std::byte> data, int flags) {
    return checked(::send(socket_.get(), data.data(), data.size(), flags | MSG_NOSIGNAL), flags, "send");
  }

  std::size_t receive_some(std::span<std::byte> data, int flags) {
    const ssize_t count = recv(socket_.get(), data.data(), data.size(), flags);
    if (count == 0) fail(ErrorKind::failed, "TCP socket: the other rank closed the connection");
    return checked(count, flags, "receive");
  }

  static std::size_t checked(ssize_t count, int flags, const char* what) {
    if (count >= 0) return static_cast<std::size_t>(count);
    const bool would_wait = (flags & MSG_DONTWAIT) != 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (errno != EINTR && !would_wait) socket_failed(what, errno);
    return 0;
  }

  UniqueFd socket_;
  std::chrono::duration<double> timeout_;
};

// On all addresses of this machine, on a free port.
class Listener {
 public:
  Listener() {
    for (const int family : {AF_INET6, AF_INET}) {
      socket_ = UniqueFd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!socket_.is_open() || !bind_any(family)) continue;
      check(listen(socket_.get(), 4), "listen");
      return;
    }
    socket_failed("bind", errno);
  }

  std::uint32_t port() const {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    check(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                               : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }

  UniqueFd accept(std::chrono::duration<double> timeout) const {
    wait_for(socket_.get(), POLLIN, timeout, "waiting for the other rank's connection");
    UniqueFd accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    check(accepted.get(), "accept");
    return accepted;
  }

 private:
  bool bind_any(int family) const {
    if (family == AF_INET) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      return bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    const int off = 0;  // also accept IPv4
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    return setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
           bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  UniqueFd socket_;
};

UniqueFd connect_to(const std::string& host, std::uint32_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const char* hint = "leave tcp out with --transports";
  if (const int code = getaddrinfo(host.c_str(), service.c_str(), &hints, &found); code != 0) {
    fail(ErrorKind::failed, "TCP socket: no address for host '{}': {}; {}", host, gai_strerror(code), hint);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  int code = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    UniqueFd made(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (made.is_open() && connect(made.get(), address->ai_addr, address->ai_addrlen) == 0) return made;
    code = errno;
  }
  fail(ErrorKind::failed, "TCP socket: cannot connect to {} port {}: {}; {}", host, port, std::strerror(code), hint);
}

std::unique_ptr<NetworkLink> wait_for_guest(const Listener& listener, const Invitation& invitation,
                                            std::chrono::duration<double> timeout) {
  while (true) {
    auto link = std::make_unique<SocketLink>(listener.accept(timeout), timeout);
    auto shown = invitation.number;
    shown.fill(0);
    try {
      link->receive(std::as_writable_bytes(std::span(shown)), 1);
    } catch (const Error&) {
      continue;  // a stranger that has left
    }
    if (shown == invitation.number) return link;
  }
}

}  // namespace

std::unique_ptr<NetworkLink> make_transport_link(comm::Communicator& communicator, int peer) {
  return std::make_unique<TransportLink>(communicator, peer);
}

std::unique_ptr<NetworkLink> make_socket_link(comm::Communicator& control, int peer, const std::string& listener_host) {
  Invitation invitation;
  const auto bytes = std::as_writable_bytes(std::span(&invitation, 1));
  if (control.rank() < peer) {
    const Listener listener;
    std::random_device random;
    invitation.port = listener.port();
    for (std::uint64_t& part : invitation.number) part = (std::uint64_t{random()} << 32) | random();
    control.send(bytes, peer, kInvitationTag);
    return wait_for_guest(listener, invitation, control.timeout());
  }
  control.receive(bytes, peer, kInvitationTag);
  auto link = std::make_unique<SocketLink>(connect_to(listener_host, invitation.port), control.timeout());
  link->send(std::as_bytes(std::span(invitation.number)), 1);
  return link;
}

}  // namespace trireme::lab
