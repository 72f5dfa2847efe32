#include "trireme/cluster/channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>

#include "trireme/base/error.hpp"
#include "trireme/cluster/greeting.hpp"

namespace trireme::cluster {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
constexpr std::uint32_t kLongestMessage = 64U << 20U;  // anything longer is not our protocol

// A name in the abstract namespace: starts with a zero byte and vanishes with the socket.
struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
  explicit Address(const std::string& text) {
    name.sun_family = AF_UNIX;
    if (text.size() + 1 > sizeof name.sun_path) bad_input("the launcher's address '{}' is too long", text);
    std::ranges::copy(text, name.sun_path + 1);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

UniqueFd make_socket() {
  UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.is_open()) fail(ErrorKind::failed, "cannot make a socket: {}", std::strerror(errno));
  return made;
}

void add_nonblocking(const UniqueFd& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

// Never raises SIGPIPE on sockets. Callers that use pipes must ignore SIGPIPE themselves.
ssize_t write_some(int descriptor, const std::string& bytes) {
  const ssize_t count = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return count < 0 && errno == ENOTSOCK ? write(descriptor, bytes.data(), bytes.size()) : count;
}

bool is_of_this_user(const UniqueFd& connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

std::string random_address() {
  std::random_device random;
  return fmt::format("trireme-{:08x}{:08x}{:08x}", random(), random(), random());
}

std::string to_frame(const nlohmann::json& message) {
  const std::vector<std::uint8_t> body = nlohmann::json::to_cbor(message);
  const auto length = static_cast<std::uint32_t>(body.size());
  std::string frame(kLengthBytes, '\0');
  std::memcpy(frame.data(), &length, kLengthBytes);
  frame.append(body.begin(), body.end());
  return frame;
}

Channel::Channel(UniqueFd socket) : Channel(std::move(socket), UniqueFd()) {}

Channel::Channel(UniqueFd input, UniqueFd output) : input_(std::move(input)), output_(std::move(output)) {
  add_nonblocking(input_);
  if (output_.is_open()) add_nonblocking(output_);
}

void Channel::send(const nlohmann::json& message) {
  unsent_ += to_frame(message);
  flush();
}

// Leaves errors to receive(), which sees the end of the connection.
void Channel::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = write_some(output_descriptor(), unsent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) unsent_.clear();
    if (count <= 0) return;
    unsent_.erase(0, count);
  }
}

bool Channel::receive(std::vector<nlohmann::json>& messages) {
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t count = read(input_.get(), chunk.data(), chunk.size());
    if (count > 0) {
      received_.append(chunk.data(), count);
      garbled_ = garbled_ || !skip_to_greeting();  // at once: the text before it may be endless
      if (garbled_) return false;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    const bool still_there = count < 0 && errno == EAGAIN;
    garbled_ = garbled_ || (greeted_ && !take_messages(messages));
    return still_there && !garbled_;
  }
}

bool Channel::skip_to_greeting() {
  if (greeted_) return true;
  const std::size_t begin = behind_greeting(received_);
  greeted_ = begin != std::string::npos;
  if (greeted_) received_.erase(0, begin);
  return greeted_ || received_.size() <= kMostChatter + kHostGreeting.size();
}

bool Channel::take_messages(std::vector<nlohmann::json>& messages) {
  std::size_t used = 0;
  while (received_.size() - used >= kLengthBytes) {
    std::uint32_t length = 0;
    std::memcpy(&length, received_.data() + used, kLengthBytes);
    if (length > kLongestMessage) return false;
    if (received_.size() - used - kLengthBytes < length) break;
    const auto body = received_.begin() + static_cast<std::ptrdiff_t>(used + kLengthBytes);
    nlohmann::json message = nlohmann::json::from_cbor(body, body + length, true, false);
    if (!message.is_object() || !message.contains("type") || !message["type"].is_string()) return false;
    messages.push_back(std::move(message));
    used += kLengthBytes + length;
  }
  received_.erase(0, used);
  return true;
}

Listener::Listener(const std::string& name) : address_(name), socket_(bind_name(name)) {
  if (!socket_.is_open() || listen(socket_.get(), SOMAXCONN) != 0) {
    fail(ErrorKind::failed, "cannot listen for the tasks of this job: {}", std::strerror(errno));
  }
  fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

UniqueFd Listener::accept() const {
  UniqueFd accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted.is_open() || !is_of_this_user(accepted)) return {};
  return accepted;
}

UniqueFd connect_to(const std::string& address) {
  UniqueFd socket = make_socket();
  const Address name(address);
  if (connect(socket.get(), name.get(), name.length) != 0) {
    fail(ErrorKind::failed, "cannot reach the launcher of this task: {}", std::strerror(errno));
  }
  if (!is_of_this_user(socket)) {
    fail(ErrorKind::failed, "cannot reach the launcher of this task: its address belongs to another user");
  }
  return socket;
}

UniqueFd bind_name(const std::string& name) {
  UniqueFd bound = make_socket();
  const Address address(name);
  if (bind(bound.get(), address.get(), address.length) != 0) bound.reset();
  return bound;
}

std::array<UniqueFd, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(ErrorKind::failed, "cannot make a socket: {}", std::strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace trireme::cluster
