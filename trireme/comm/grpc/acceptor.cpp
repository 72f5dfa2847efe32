#include "trireme/comm/grpc/acceptor.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

// Unproven connections besides two per task, which may all connect at once. Beyond that the oldest is closed.
constexpr std::size_t kSpareUnproven = 64;
constexpr std::chrono::seconds kLongestUnproven{20};
constexpr std::uint64_t kMostUnprovenBytes = 64 << 10;  // a handshake, even with TLS, takes some KB

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null, with the reason, if the lookup fails.
AddressList look_up(const std::string& address, std::string& reason) {
  AddressList none(nullptr, &freeaddrinfo);
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    reason = "is not of the form HOST:PORT";
    return none;
  }
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    reason = gai_strerror(code);
    return none;
  }
  return {found, &freeaddrinfo};
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    const auto* const socket = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return ntohl(socket->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

// Whether an address is only reachable from this host.
bool is_loopback(const std::string& address) {
  std::string reason;
  const AddressList all = look_up(address, reason);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    if (!is_loopback(*each)) return false;
  }
  return all != nullptr;
}

// Preference among the addresses of a name for listening.
int rank_of(const addrinfo& address) { return (is_loopback(address) ? 0 : 2) + (address.ai_family == AF_INET ? 1 : 0); }

std::string to_text(const addrinfo& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return address.ai_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                       : fmt::format("{}:{}", host.data(), port.data());
}

// The best of a name's addresses.
std::string resolve_address(const RpcTask& task) {
  std::string reason;
  const AddressList all = look_up(task.address, reason);
  if (all == nullptr) bad_input("{}: cannot listen on '{}': {}", task.name, task.address, reason);
  const addrinfo* best = all.get();
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    if (rank_of(*each) > rank_of(*best)) best = each;
  }
  return to_text(*best);
}

// A task must not listen on an address that only its own host can reach if others are elsewhere.
void check_reachable(const std::string& resolved, const std::vector<RpcTask>& tasks, int self) {
  if (!is_loopback(resolved)) return;
  const RpcTask& own = tasks[self];
  for (const RpcTask& task : tasks) {
    if (is_loopback(task.address)) continue;
    bad_input(
        "{}: {} resolves to {} here, which no other host can reach, but {} is at {}; list this host's address in the "
        "network",
        own.name, own.address, resolved, task.name, task.address);
  }
}

// The socket closes connections whose peer has acknowledged nothing for too long.
UniqueFd listen_on(const std::string& resolved, const RpcOptions& options) {
  check_reachable(resolved, options.tasks, options.self);
  const std::string& who = options.tasks[options.self].name;
  std::string reason;
  const AddressList address = look_up(resolved, reason);
  if (address == nullptr) bad_input("{}: {} {}", who, resolved, reason);
  UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) bad_input("{}: cannot listen on {}: {}", who, resolved, std::strerror(errno));
  const int yes = 1;  // ignore connections that are still closing
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto unanswered = static_cast<unsigned>(options.liveness.answer_within.count());
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
  if (bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  if (errno == EADDRINUSE) {
    bad_input("{}: {} is in use; another process, or a second task with this index, is listening there", who, resolved);
  }
  if (errno == EADDRNOTAVAIL) {
    bad_input("{}: {} is not an address of this host; the list of tasks or this task's index is wrong", who, resolved);
  }
  bad_input("{}: cannot listen on {}: {}", who, resolved, std::strerror(errno));
}

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

// In gRPC's notation: IPv4-mapped IPv6 addresses as IPv4.
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

// Bytes received on a connection, read or not.
std::uint64_t received_bytes(int connection) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

Acceptor::Acceptor(const RpcOptions& options)
    : address_(resolve_address(options.tasks[options.self])),
      listener_(listen_on(address_, options)),
      most_unproven_(kSpareUnproven + 2 * options.tasks.size()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) fail(ErrorKind::failed, "cannot make an event descriptor: {}", std::strerror(errno));
}

void Acceptor::open(std::function<void(int)> hand_on) {
  hand_on_ = std::move(hand_on);
  thread_ = std::thread([this] { watch(); });
}

void Acceptor::close() {
  if (!thread_.joinable()) return;
  is_closing_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
  listener_.reset();
}

void Acceptor::set_proven(const std::string& peer) {
  const int port = port_of(peer);
  const std::lock_guard lock(mutex_);
  unproven_.remove_if(
      [&](const Unproven& each) { return each.port == port && peer.find(each.host) != std::string::npos; });
}

void Acceptor::watch() {
  constexpr int kTickMs = 10;  // in which a flooding peer can send some MB
  while (!is_closing_) {
    pollfd waited[] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    poll(waited, 2, has_unproven() ? kTickMs : -1);
    if ((waited[0].revents & POLLIN) != 0) accept_one();
    enforce_limits();
  }
}

bool Acceptor::has_unproven() {
  const std::lock_guard lock(mutex_);
  return !unproven_.empty();
}

void Acceptor::accept_one() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  UniqueFd connection(
      accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.is_open()) {
    // Out of descriptors, for example: the connection stays queued.
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
    // Closed connections need no watching.
    unproven_.remove_if([](const Unproven& each) {
      pollfd asked{each.connection.get(), 0, 0};
      return poll(&asked, 1, 0) > 0;
    });
    unproven_.push_back({std::move(second), host_of(address), port_of(address), SteadyClock::now()});
  }
  hand_on_(connection.release());
}

void Acceptor::enforce_limits() {
  const std::lock_guard lock(mutex_);
  unproven_.remove_if([&](const Unproven& each) {
    const bool floods = received_bytes(each.connection.get()) > kMostUnprovenBytes;
    if (floods) shutdown(each.connection.get(), SHUT_RDWR);
    return floods;
  });
  while (!unproven_.empty() &&
         (unproven_.size() > most_unproven_ || SteadyClock::now() - unproven_.front().since > kLongestUnproven)) {
    shutdown(unproven_.front().connection.get(), SHUT_RDWR);
    unproven_.pop_front();
  }
}

}  // namespace trireme::comm::rpc
