#include "flood.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "raw_socket.hpp"

namespace trireme::comm::testkit {
namespace {

enum Type { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7, kWindowUpdate = 8 };
constexpr int kAck = 1, kEndStream = 1, kEndHeaders = 4;
constexpr std::size_t kFrameHeader = 9, kLargestFrame = 16384;

std::string big_endian(std::uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
  return text;
}

std::uint32_t number_at(const std::string& text, std::size_t at, int bytes) {
  std::uint32_t number = 0;
  for (int i = 0; i < bytes; ++i)
    number = number << 8 | static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
  return number;
}

std::string counted(const std::string& text) { return static_cast<char>(text.size()) + text; }

// HPACK, with the static table and nothing compressed.
std::string headers_for(const std::string& method) {
  return "\x83\x86\x04" + counted(method) + "\x01" + counted("localhost") + "\x0f\x10" + counted("application/grpc") +
         std::string(1, '\0') + counted("te") + counted("trailers");
}

}  // namespace

Flood::Flood(const std::string& address, std::string method)
    : socket_(connect_to(address)), method_(std::move(method)) {
  is_open_ = socket_.is_open() && send_all(socket_.get(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  send_frame(kSettings, 0, 0, "");
}

void Flood::run(int calls, std::size_t message_bytes) {
  constexpr int kQuietMs = 300;
  read_frames(kQuietMs);  // what the server allows
  const int most = 20 * calls;
  do {
    while (is_open_ && calls_.size() < std::min<std::size_t>(static_cast<std::size_t>(calls), most_calls_) &&
           next_stream_ < 2 * static_cast<std::uint32_t>(most)) {
      open_call(message_bytes);
    }
    send_data();
  } while (is_open_ && read_frames(kQuietMs));
}

void Flood::open_call(std::size_t message_bytes) {
  const std::uint32_t stream = next_stream_;
  next_stream_ += 2;
  send_frame(kHeaders, kEndHeaders, stream, headers_for(method_));
  // One byte of the message never comes.
  calls_[stream] = {
      .window = first_window_, .message_bytes = static_cast<std::uint32_t>(message_bytes), .left = message_bytes + 4};
}

void Flood::send_data() {
  for (auto& [stream, call] : calls_) {
    while (is_open_ && call.left > 0 && call.window > 0 && window_ > 0) {
      const auto allowed = static_cast<std::size_t>(std::min(call.window, window_));
      const std::size_t bytes = std::min({allowed, call.left, kLargestFrame});
      std::string payload(bytes, 'x');
      if (!std::exchange(call.has_begun, true)) {
        payload.replace(0, 5, std::string(1, '\0') + big_endian(call.message_bytes, 4));
      }
      send_frame(kData, 0, stream, payload);
      sent_ += bytes;
      call.left -= bytes;
      call.window -= static_cast<std::int64_t>(bytes);
      window_ -= static_cast<std::int64_t>(bytes);
    }
  }
}

bool Flood::read_frames(int timeout_ms) {
  pollfd waited{socket_.get(), POLLIN, 0};
  if (poll(&waited, 1, timeout_ms) <= 0) return false;
  std::string buffer(1 << 16, '\0');
  const ssize_t count = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count <= 0) {
    is_open_ = false;
    return false;
  }
  received_.append(buffer, 0, count);
  while (received_.size() >= kFrameHeader) {
    const std::size_t length = number_at(received_, 0, 3);
    if (received_.size() < kFrameHeader + length) break;
    const std::string payload = received_.substr(kFrameHeader, length);
    take_frame(received_[3], received_[4], number_at(received_, 5, 4), payload);
    received_.erase(0, kFrameHeader + length);
  }
  return true;
}

void Flood::take_frame(int type, int flags, std::uint32_t stream, const std::string& payload) {
  if (type == kSettings && (flags & kAck) == 0) {
    for (std::size_t at = 0; at + 6 <= payload.size(); at += 6) {
      const std::uint32_t value = number_at(payload, at + 2, 4);
      if (number_at(payload, at, 2) == 3) most_calls_ = value;
      if (number_at(payload, at, 2) != 4) continue;
      for (auto& [open, call] : calls_) call.window += static_cast<std::int64_t>(value) - first_window_;
      first_window_ = value;
    }
    send_frame(kSettings, kAck, 0, "");
  } else if (type == kPing && (flags & kAck) == 0) {
    send_frame(kPing, kAck, 0, payload);
  } else if (type == kWindowUpdate) {
    const auto more = static_cast<std::int64_t>(number_at(payload, 0, 4));
    if (stream == 0) window_ += more;
    if (const auto found = calls_.find(stream); found != calls_.end()) found->second.window += more;
  } else if (type == kReset || (type == kHeaders && (flags & kEndStream) != 0)) {
    calls_.erase(stream);
  } else if (type == kGoAway) {
    is_open_ = false;
  }
}

void Flood::send_frame(int type, int flags, std::uint32_t stream, const std::string& payload) {
  if (!is_open_) return;
  is_open_ =
      send_all(socket_.get(), big_endian(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(type) +
                                  static_cast<char>(flags) + big_endian(stream, 4) + payload);
}

}  // namespace trireme::comm::testkit
