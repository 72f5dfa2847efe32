// A stranger who speaks HTTP/2 and holds calls open: each announces a large message and never ends it. What gRPC's own
// client cannot do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "trireme/base/unique_fd.hpp"

namespace trireme::comm::testkit {

class Flood {
 public:
  Flood(const std::string& address, std::string method);

  // Opens as many calls as the server allows, up to `calls`, and new ones when it ends some, up to 20 times as many;
  // and sends into each as much of its message as the server wants. Returns when the server wants no more, or closes
  // the connection. The connection stays open, if the server leaves it so.
  void run(int calls, std::size_t message_bytes);
  std::size_t sent_bytes() const { return sent_; }

 private:
  struct Call {
    std::int64_t window = 0;
    std::uint32_t message_bytes = 0;
    std::size_t left = 0;
    bool has_begun = false;
  };
  void open_call(std::size_t message_bytes);
  void send_data();
  bool read_frames(int timeout_ms);  // whether anything came
  void take_frame(int type, int flags, std::uint32_t stream, const std::string& payload);
  void send_frame(int type, int flags, std::uint32_t stream, const std::string& payload);

  UniqueFd socket_;
  const std::string method_;
  std::string received_;
  std::map<std::uint32_t, Call> calls_;
  std::uint32_t next_stream_ = 1;
  std::int64_t window_ = 65535, first_window_ = 65535;  // of the connection, of a new call
  std::size_t most_calls_ = 1000;                       // that the server allows
  std::size_t sent_ = 0;
  bool is_open_ = true;
};

}  // namespace trireme::comm::testkit
