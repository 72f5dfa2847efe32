// Nonblocking JSON messages over a socket or a pair of pipes, between the supervisor and its tasks and from a task's
// program to its runner. Both ends poll the descriptor and call receive() and flush(). Messages by "type":
//   runner to supervisor   ready {task, port}            remote agent: the runner may come; the task's port, if any
//                          hello {task, host}            once connected
//                          started {pid} | not_started {reason}
//                          output {stream: 1|2, text}    as it arrives
//                          error {text}                  the program's message, before it ends
//                          record {text}                 the program's record, for the launcher to write
//                          stopped {signal} | continued
//                          ended {code, signal}          signal 0: exited with this code
//                          lost {reason}                 from a relay: its host is unreachable
//                          here                          from a remote agent: answer to ping
//                          end_request                   the same: Slurm wants the job to end
//                          trains                        the program begins its first step
//   supervisor to runner   run {task: Task}              after hello from all tasks
//                          signal {signal}               to the program and its children
//                          members {epoch, workers}      to the program: the ranks of those who are left
//                          ping                          to one runner per other host
//                          release                       the runner may leave
//   program to runner      error {text} | record {text} | trains
//   runner to program      members {epoch, workers}
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

// Frame: length, then CBOR, whose strings carry any bytes, as in output and arguments.
std::string to_frame(const nlohmann::json& message);

class Channel {
 public:
  explicit Channel(UniqueFd socket);
  Channel(UniqueFd input, UniqueFd output);  // two descriptors, such as pipes

  int descriptor() const { return input_.get(); }
  int output_descriptor() const { return output_.is_open() ? output_.get() : input_.get(); }
  void send(const nlohmann::json& message);
  void flush();  // writes what the socket takes now
  std::size_t unsent_bytes() const { return unsent_.size(); }
  // Skips everything before the greeting (greeting.hpp). Call before receiving anything.
  void await_greeting() { greeted_ = false; }
  // Appends complete messages. False if the peer is gone or violates the protocol.
  [[nodiscard]] bool receive(std::vector<nlohmann::json>& messages);
  bool is_garbled() const { return garbled_; }  // protocol violation

 private:
  bool skip_to_greeting();
  bool take_messages(std::vector<nlohmann::json>& messages);

  UniqueFd input_, output_;  // without output_, input_ is used for both
  std::string unsent_, received_;
  bool greeted_ = true, garbled_ = false;
};

std::string random_address();  // that nobody else uses

// An abstract socket (no file). Accepts only processes of the same user.
class Listener {
 public:
  explicit Listener(const std::string& address = random_address());

  const std::string& address() const { return address_; }
  int descriptor() const { return socket_.get(); }
  UniqueFd accept() const;  // closed if nobody (of this user) was waiting

 private:
  std::string address_;
  UniqueFd socket_;
};

UniqueFd connect_to(const std::string& address);  // Error(failed) if nobody of this user listens there

// An abstract socket with this name, until closed. Not open if another process has the name.
UniqueFd bind_name(const std::string& name);
std::array<UniqueFd, 2> socket_pair();

}  // namespace trireme::cluster
