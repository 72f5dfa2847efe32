// A running StartCommand and its output, which matters only if it fails. Owned and polled by the Supervisor.
#pragma once

#include <fcntl.h>

#include <optional>
#include <sstream>
#include <string>

#include "trireme/base/unique_fd.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

class StarterProcess {
 public:
  // `address` is the supervisor's; runners connect to it.
  StarterProcess(const StartCommand& start, const std::string& address)
      : StarterProcess(start, address, make_pipe(), make_pipe()) {}

  const StartCommand& start() const { return start_; }
  int output_descriptor() const { return output_.get(); }
  int end_descriptor() const { return process_.poll_descriptor(); }
  bool is_over() const { return over_; }
  // Reads its output. Returns its ending once, when it has ended.
  std::optional<Ending> look() {
    if (over_) return std::nullopt;
    const auto ending = process_.try_wait();  // before reading, so that the output is complete
    read_available(output_, text_);
    over_ = ending.has_value();
    return ending;
  }
  // Its output on one line, without the rulers that launchers print around messages.
  std::string output() const {
    std::istringstream words(text_);
    std::string result;
    for (std::string word; words >> word;) {
      if (word.find_first_not_of('-') == std::string::npos) continue;
      result += (result.empty() ? "" : " ") + word;
    }
    return result;
  }
  void let_go() { lifeline_.reset(); }  // it is no longer needed

 private:
  StarterProcess(const StartCommand& start, const std::string& address, PipeEnds output, PipeEnds lifeline)
      : start_(start),
        process_(child_options(start, address, lifeline.read.get(), output.write.get())),
        output_(std::move(output.read)),
        lifeline_(std::move(lifeline.write)) {
    fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  }
  static ChildOptions child_options(const StartCommand& start, const std::string& address, int input, int output) {
    auto environment = start.environment;
    environment[kLaunchVariable] = address;
    return {.command = start.command,
            .environment = environment,
            .dropped_variables = start.dropped_variables,
            .in = start.reaches_other_host ? input : -1,
            .out = output,
            .err = output};
  }

  StartCommand start_;
  ChildProcess process_;
  UniqueFd output_, lifeline_;
  std::string text_;
  bool over_ = false;
};

}  // namespace trireme::cluster
