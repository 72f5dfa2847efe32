// Messages between the supervisor and its tasks, and from a task's program to the runner beside it: JSON values over a
// connected socket or a pair of pipes, without blocking. Both ends poll the socket and call receive() and flush() when
// it is ready.
//
// The messages, by "type":
//   runner to supervisor   ready {task, port}            from the agent of another host: the runner may come, and the
//                                                        task will listen there, if it meets others at an address
//                          hello {task, host}            once connected
//                          started {pid} | not_started {reason}
//                          output {stream: 1|2, text}    as it comes
//                          error {text}                  the program's own words, before it ends
//                          stopped {signal} | continued
//                          ended {code, signal}          signal 0: by itself, with this exit code
//                          lost {reason}                 from the relay of another host: that is out of reach
//                          here                          from the agent of another host: the answer to ping
//                          end_request                   likewise: somebody there (Slurm) wants the job to end
//   supervisor to runner   run {task: Task}              when all tasks have said hello
//                          signal {signal}               to the program and what it has started
//                          ping                          to one runner of each other host
//                          release                       the runner may leave
//   program to runner      error {text}
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

namespace trireme::cluster {

// As it travels: length, then CBOR, which carries any bytes in its strings, as output and arguments may have them.
std::string to_frame(const nlohmann::json& message);

class Channel {
 public:
  explicit Channel(UniqueFd socket);
  Channel(UniqueFd input, UniqueFd output);  // where they are two; pipes will do

  int descriptor() const { return input_.get(); }
  int output_descriptor() const { return output_.is_open() ? output_.get() : input_.get(); }
  void send(const nlohmann::json& message);
  void flush();  // writes what the socket takes now
  std::size_t unsent_bytes() const { return unsent_.size(); }
  // What comes before the greeting (greeting.hpp) is others' and is skipped; to be called before anything is received.
  void await_greeting() { greeted_ = false; }
  // Adds the messages that are complete. False: the other end is gone, or does not speak this protocol.
  [[nodiscard]] bool receive(std::vector<nlohmann::json>& messages);
  bool is_garbled() const { return garbled_; }  // the latter

 private:
  bool skip_to_greeting();
  bool take_messages(std::vector<nlohmann::json>& messages);

  UniqueFd input_, output_;  // without the latter the former is for both
  std::string unsent_, received_;
  bool greeted_ = true, garbled_ = false;
};

// An address that nobody else has.
std::string random_address();

// A socket of this machine that has a name but no file. Only processes of the same user are accepted.
class Listener {
 public:
  explicit Listener(const std::string& address = random_address());

  const std::string& address() const { return address_; }
  int descriptor() const { return socket_.get(); }
  UniqueFd accept() const;  // not open where nobody (of this user) was waiting

 private:
  std::string address_;
  UniqueFd socket_;
};

// Error(failed) if nobody of this user listens there.
UniqueFd connect_to(const std::string& address);

// A socket of this machine that has this name but no file, until it is closed. Not open if another process has the
// name.
UniqueFd bind_name(const std::string& name);
std::array<UniqueFd, 2> socket_pair();

}  // namespace trireme::cluster
