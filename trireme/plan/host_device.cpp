#include <cstring>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/plan/compute_device.hpp"

namespace trireme {
namespace {

class HostDevice final : public ComputeDevice {
 public:
  std::string name() const override { return "cpu"; }
  bool is_host() const override { return true; }
  DeviceMemory allocate(std::int64_t bytes, std::string_view) override {
    auto memory = std::make_shared<AlignedMemory>(bytes);
    void* const data = memory->at(0);
    return {std::shared_ptr<void>(std::move(memory), data), bytes};
  }
  DeviceMemory allocate_staging(std::int64_t bytes) override { return allocate(bytes, ""); }
  void upload(void* to, const void* from, std::int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override { upload(to, from, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override { upload(to, from, bytes); }
  void synchronize() override {}
  void set_context(const RunContext&) override {}
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>&) override { return nullptr; }
};

}  // namespace

ComputeDevice& host_device() {
  static HostDevice device;  // stateless
  return device;
}

}  // namespace trireme
