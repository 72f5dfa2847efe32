// For transfers from and to memory that lasts as long as a function: when that is left by an error, they are given up
// before the memory goes. To be declared after the memory.
#pragma once

#include <exception>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

class AbandonOnError {
 public:
  explicit AbandonOnError(Communicator& communicator) : communicator_(communicator) {}
  AbandonOnError(const AbandonOnError&) = delete;
  AbandonOnError& operator=(const AbandonOnError&) = delete;
  ~AbandonOnError() {
    if (std::uncaught_exceptions() > exceptions_) communicator_.abandon();
  }

 private:
  Communicator& communicator_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace trireme::comm
