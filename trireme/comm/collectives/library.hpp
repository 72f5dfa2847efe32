// All-reduce by the transport's library, waited for like everything else.
#pragma once

#include "trireme/comm/collectives/algorithm.hpp"

namespace trireme::comm {

class Library : public AllReduceAlgorithm {
 public:
  explicit Library(Communicator& communicator) : communicator_(communicator) {
    communicator.prepare_library_all_reduce();
  }
  void reduce(std::span<float> values, Reduction reduction) override {
    communicator_.wait(communicator_.start_library_all_reduce(values, reduction));
  }

 private:
  Communicator& communicator_;
};

}  // namespace trireme::comm
