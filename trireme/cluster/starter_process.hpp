// A StartCommand that was carried out: the process that starts runners, and what it prints, which matters only where it
// fails. Owned by the Supervisor, which polls its descriptors.
#pragma once

#include <optional>
#include <string>

#include "trireme/base/unique_fd.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

class StarterProcess {
 public:
  // The address is that of the supervisor, to which the runners connect.
  StarterProcess(const StartCommand& start, const std::string& address);

  const StartCommand& start() const { return start_; }
  int output_descriptor() const { return output_.get(); }
  int end_descriptor() const { return process_.poll_descriptor(); }
  bool is_over() const { return over_; }
  // Takes in what it has printed. Its ending, when that is news.
  std::optional<Ending> look();
  std::string said() const;             // in one line
  void let_go() { lifeline_.reset(); }  // it is no longer needed

 private:
  StarterProcess(const StartCommand& start, const std::string& address, PipeEnds output, PipeEnds lifeline);

  StartCommand start_;
  ChildProcess process_;
  UniqueFd output_, lifeline_;
  std::string said_;
  bool over_ = false;
};

}  // namespace trireme::cluster
