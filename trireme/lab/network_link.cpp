#include "trireme/lab/network_link.hpp"

#include <vector>

namespace trireme::lab {
namespace {

constexpr int kTag = 0;

class TransportLink : public NetworkLink {
 public:
  TransportLink(comm::Communicator& communicator, int peer) : communicator_(communicator), peer_(peer) {}

  void send(std::span<const std::byte> data, std::size_t messages) override {
    const std::size_t bytes = data.size() / messages;
    for (std::size_t i = 0; i < messages; ++i) {
      transfers_.push_back(communicator_.start_send(data.subspan(i * bytes, bytes), peer_, kTag));
    }
    wait();
  }

  void receive(std::span<std::byte> data, std::size_t messages) override {
    const std::size_t bytes = data.size() / messages;
    for (std::size_t i = 0; i < messages; ++i) {
      transfers_.push_back(communicator_.start_receive(data.subspan(i * bytes, bytes), peer_, kTag));
    }
    wait();
  }

  void exchange(std::span<const std::byte> out, std::span<std::byte> in) override {
    transfers_.push_back(communicator_.start_receive(in, peer_, kTag));
    transfers_.push_back(communicator_.start_send(out, peer_, kTag));
    wait();
  }

 private:
  void wait() {
    for (const comm::Transfer transfer : transfers_) communicator_.wait(transfer);
    transfers_.clear();
  }

  comm::Communicator& communicator_;
  int peer_;
  std::vector<comm::Transfer> transfers_;
};

}  // namespace

std::unique_ptr<NetworkLink> make_transport_link(comm::Communicator& communicator, int peer) {
  return std::make_unique<TransportLink>(communicator, peer);
}

}  // namespace trireme::lab
