#include "trireme/cluster/starter_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "trireme/cluster/environment.hpp"

namespace trireme::cluster {
namespace {

ChildOptions child_options(const StartCommand& start, const std::string& address, int input, int output) {
  auto environment = start.environment;
  environment[kLaunchVariable] = address;
  return {.command = start.command,
          .environment = environment,
          .dropped_variables = start.dropped_variables,
          .in = start.reaches_other_host ? input : -1,
          .out = output,
          .err = output};
}

}  // namespace

StarterProcess::StarterProcess(const StartCommand& start, const std::string& address)
    : StarterProcess(start, address, make_pipe(), make_pipe()) {}

StarterProcess::StarterProcess(const StartCommand& start, const std::string& address, PipeEnds output,
                               PipeEnds lifeline)
    : start_(start),
      process_(child_options(start, address, lifeline.read.get(), output.write.get())),
      output_(std::move(output.read)),
      lifeline_(std::move(lifeline.write)) {
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
}

std::optional<Ending> StarterProcess::look() {
  if (over_) return std::nullopt;
  const auto ending = process_.try_wait();  // asked first: what it has said is complete then
  std::array<char, 4096> chunk{};
  ssize_t count = 0;
  while ((count = read(output_.get(), chunk.data(), chunk.size())) > 0) {
    said_.append(chunk.data(), count);
  }
  if (count == 0) output_.reset();
  over_ = ending.has_value();
  return ending;
}

// Without the frames that launchers draw around their messages.
std::string StarterProcess::said() const {
  std::istringstream words(said_);
  std::string result;
  for (std::string word; words >> word;) {
    if (word.find_first_not_of('-') == std::string::npos) continue;
    result += (result.empty() ? "" : " ") + word;
  }
  return result;
}

}  // namespace trireme::cluster
