// A group of GPUs in several processes that sum and exchange through NCCL, in builds with NCCL.
#include <fmt/format.h>
#include <nccl.h>

#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/cuda/library.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

const Library& nccl_library() {
  static const Library library("libnccl.so.2", "install NCCL 2");
  return library;
}
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclAllReduce);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclCommAbort);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclCommDestroy);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclCommGetAsyncError);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclCommInitRank);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclGetErrorString);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclGetUniqueId);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclRecv);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclRedOpCreatePreMulSum);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclRedOpDestroy);
TRIREME_LIBRARY_FUNCTION(nccl_library, ncclSend);

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fail(ErrorKind::failed, "NCCL: {}: {}; set NCCL_DEBUG=INFO for details", what, ncclGetErrorString(result));
}

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(CudaDevice& device, const ncclUniqueId& id, const GroupPlan& plan)
      : device_(device), timeout_(plan.timeout_seconds) {
    check_nccl(ncclCommInitRank(&communicator_, plan.ranks, id, plan.rank), "GPUs cannot connect to each other");
    device_.set_waiting([this](cudaStream_t stream) { wait(stream); });
  }
  // Aborts if work is pending: it never ends if another process is gone.
  ~NcclGroup() override {
    device_.set_waiting({});
    if (communicator_ == nullptr) return;
    if (!device_.is_idle()) {
      ncclCommAbort(communicator_);
      return;
    }
    for (const auto& [factor, operation] : operations_) ncclRedOpDestroy(operation, communicator_);
    ncclCommDestroy(communicator_);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void sum(float* values, std::int64_t elements, const float* factor) override {
    check_nccl(
        ncclAllReduce(values, values, elements, ncclFloat, weighted_sum(factor), communicator_, device_.stream()),
        "a sum cannot be started");
  }
  void send(const void* memory, std::int64_t bytes, int to) override {
    check_nccl(ncclSend(memory, static_cast<std::size_t>(bytes), ncclChar, to, communicator_, device_.stream()),
               "a transfer cannot be started");
  }
  void receive(void* memory, std::int64_t bytes, int from) override {
    check_nccl(ncclRecv(memory, static_cast<std::size_t>(bytes), ncclChar, from, communicator_, device_.stream()),
               "a transfer cannot be started");
  }

 private:
  void wait(cudaStream_t stream) {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(10);
    const auto start = SteadyClock::now();
    auto next_look = start + kBetweenLooks;
    for (;;) {
      const cudaError_t state = cudaStreamQuery(stream);
      if (state != cudaErrorNotReady) return check(state, "work on the GPU");
      std::this_thread::yield();
      const auto now = SteadyClock::now();
      if (now < next_look) continue;
      next_look = now + kBetweenLooks;
      ncclResult_t problem = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(communicator_, &problem), "how its work goes");
      if (problem != ncclSuccess && problem != ncclInProgress) {
        give_up(ncclGetErrorString(problem));
      } else if (now - start > timeout_) {
        give_up(fmt::format("no answer from the other GPUs for {:.0f} s (--comm-timeout)", timeout_.count()));
      }
    }
  }
  [[noreturn]] void give_up(const std::string& why) {
    ncclCommAbort(std::exchange(communicator_, nullptr));
    fail(ErrorKind::failed, "NCCL: {}: a worker is gone or stuck; set NCCL_DEBUG=INFO for details", why);
  }

  // The GPU reads the factor when a sum begins, so a captured sum uses the current value.
  ncclRedOp_t weighted_sum(const float* factor) {
    const auto found = operations_.find(factor);
    if (found != operations_.end()) return found->second;
    ncclRedOp_t operation = ncclSum;
    check_nccl(
        ncclRedOpCreatePreMulSum(&operation, const_cast<float*>(factor), ncclFloat, ncclScalarDevice, communicator_),
        "a weighted sum");
    operations_.emplace(factor, operation);
    return operation;
  }

  CudaDevice& device_;
  std::chrono::duration<double> timeout_;
  ncclComm_t communicator_ = nullptr;
  std::map<const float*, ncclRedOp_t> operations_;
};

}  // namespace

bool CudaDevice::has_groups() const { return nccl_library().is_there(); }

std::string CudaDevice::name_group() {
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "a group of GPUs cannot be named");
  return {id.internal, sizeof(id.internal)};
}

std::unique_ptr<DeviceGroup> CudaDevice::join_group(const GroupPlan& plan) {
  ncclUniqueId id;
  if (plan.name.size() != sizeof(id.internal)) {
    fail(ErrorKind::failed, "a group of GPUs has a name of {} bytes, but this one has {}", sizeof(id.internal),
         plan.name.size());
  }
  std::memcpy(id.internal, plan.name.data(), plan.name.size());
  return std::make_unique<NcclGroup>(*this, id, plan);
}

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

}  // namespace trireme::cuda
