#include "trireme/comm/grpc/porch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

// As gRPC writes it: IPv4 addresses in IPv6 clothes without those.
std::string host_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  const std::string host = text;
  constexpr std::string_view kMapped = "::ffff:";
  return host.starts_with(kMapped) ? host.substr(kMapped.size()) : host;
}

int port_of(const std::string& peer) {
  int port = -1;
  const std::size_t colon = peer.rfind(':');
  if (colon != std::string::npos) std::from_chars(peer.data() + colon + 1, peer.data() + peer.size(), port);
  return port;
}

// What has come over a connection so far, read or not.
std::uint64_t received_bytes(int connection) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

Porch::Porch(UniqueFd listener, Limits limits)
    : listener_(std::move(listener)), limits_(limits), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) fail(ErrorKind::failed, "cannot make an event descriptor: {}", std::strerror(errno));
}

void Porch::open(std::function<void(int)> hand_on) {
  hand_on_ = std::move(hand_on);
  thread_ = std::thread([this] { watch(); });
}

void Porch::close() {
  if (!thread_.joinable()) return;
  is_closing_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
  listener_.reset();
}

void Porch::know(const std::string& peer) {
  const int port = port_of(peer);
  const std::lock_guard lock(mutex_);
  strangers_.remove_if(
      [&](const Stranger& stranger) { return stranger.port == port && peer.find(stranger.host) != std::string::npos; });
}

void Porch::watch() {
  constexpr int kTickMs = 10;  // in which somebody who floods us can send some MB
  while (!is_closing_) {
    pollfd waited[] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    poll(waited, 2, has_strangers() ? kTickMs : -1);
    if ((waited[0].revents & POLLIN) != 0) accept_one();
    drop_unwelcome();
  }
}

bool Porch::has_strangers() {
  const std::lock_guard lock(mutex_);
  return !strangers_.empty();
}

void Porch::accept_one() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  UniqueFd connection(
      accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.is_open()) {
    // Without descriptors, say: the connection stays where it is until there are some.
    if (errno != ECONNABORTED && errno != EINTR && errno != EAGAIN) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return;
  }
  const int yes = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  UniqueFd second(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!second.is_open()) return;
  {
    const std::lock_guard lock(mutex_);
    // Those who are gone need no longer be kept in mind.
    strangers_.remove_if([](const Stranger& stranger) {
      pollfd asked{stranger.connection.get(), 0, 0};
      return poll(&asked, 1, 0) > 0;
    });
    strangers_.push_back({std::move(second), host_of(address), port_of(address), Clock::now()});
  }
  hand_on_(connection.release());
}

void Porch::drop_unwelcome() {
  const std::lock_guard lock(mutex_);
  strangers_.remove_if([&](const Stranger& stranger) {
    const bool floods = received_bytes(stranger.connection.get()) > limits_.bytes;
    if (floods) shutdown(stranger.connection.get(), SHUT_RDWR);
    return floods;
  });
  while (!strangers_.empty() &&
         (strangers_.size() > limits_.strangers || Clock::now() - strangers_.front().since > limits_.patience)) {
    shutdown(strangers_.front().connection.get(), SHUT_RDWR);
    strangers_.pop_front();
  }
}

}  // namespace trireme::comm::rpc
