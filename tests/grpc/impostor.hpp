// Somebody who listens at a task's address before the task does. Used by tests, in a process of its own.
#pragma once

#include <string>

namespace trireme::comm::testkit {

enum class Impostor {
  silent,    // takes connections and says nothing
  refuses,   // says that every proof is wrong
  agrees,    // to everything, without a proof
  stalls,    // answers, and shows no proof
  guesses,   // shows some proof
  reflects,  // shows the caller's own
};
std::string to_string(Impostor kind);

// All that the first caller says, until it goes; with this at its end if it says more than who it is.
inline constexpr const char* kBelieved = "(believes it)";
std::string listen_as_impostor(const std::string& address, Impostor kind);

}  // namespace trireme::comm::testkit
