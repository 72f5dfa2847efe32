// Calls into MPI: serialised where the library wants that, their errors turned into ours.
#pragma once

#include <mpi.h>

#include <mutex>
#include <string>

#include "trireme/base/error.hpp"

namespace trireme::comm::mpi {

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// One per process, shared by all its communicators.
class MpiCalls {
 public:
  explicit MpiCalls(bool concurrent) : concurrent_(concurrent) {}

  // Runs a call. `describe` says what was being done and is asked only when the call fails.
  template <typename Call, typename Describe>
  void run(const Call& call, const Describe& describe) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!concurrent_) lock.lock();
    const int code = call();
    if (code != MPI_SUCCESS) fail(ErrorKind::failed, "{}: MPI says: {}", describe(), error_text(code));
  }

 private:
  const bool concurrent_;  // MPI_THREAD_MULTIPLE
  std::mutex mutex_;
};

}  // namespace trireme::comm::mpi
