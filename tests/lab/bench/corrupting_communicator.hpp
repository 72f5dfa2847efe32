// A communicator that changes a bit of every message of at least so many bytes on its way out. For tests of those who
// check what they receive.
#pragma once

#include <memory>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::testkit {

class CorruptingCommunicator : public comm::Communicator {
 public:
  CorruptingCommunicator(comm::Communicator& inner, std::size_t least_bytes)
      : Communicator(inner.rank(), inner.size()), inner_(inner), least_bytes_(least_bytes) {
    set_members({inner.members().begin(), inner.members().end()});
  }

  std::string_view protocol() const override { return "corrupting"; }

 protected:
  void post_send(int slot, std::span<const std::byte> data, int to, int tag) override {
    Message& message = at(slot);
    message.data.assign(data.begin(), data.end());
    if (data.size() >= least_bytes_) message.data.back() ^= std::byte{0x40};
    message.transfer = inner_.start_send(message.data, to, tag);
  }
  void post_receive(int slot, std::span<std::byte> data, int from, int tag) override {
    at(slot).transfer = inner_.start_receive(data, from, tag);
  }
  bool test(int slot) override { return inner_.done(at(slot).transfer); }
  std::unique_ptr<Communicator> make_group(const std::vector<int>& ranks, int) override {
    return inner_.subgroup(ranks);
  }

 private:
  struct Message {
    std::vector<std::byte> data;
    comm::Transfer transfer;
  };
  Message& at(int slot) {
    const auto index = static_cast<std::size_t>(slot);
    if (messages_.size() <= index) messages_.resize(index + 1);
    return messages_[index];
  }

  comm::Communicator& inner_;
  std::size_t least_bytes_;
  std::vector<Message> messages_;  // by slot
};

}  // namespace trireme::testkit
