// A group of GPUs in several processes that sum and exchange through NCCL, in builds with NCCL.
#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <map>
#include <utility>

#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/cuda/library.hpp"
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

class NcclGroup final : public DeviceGroup, public GroupCheck {
 public:
  NcclGroup(CudaDevice& device, const ncclUniqueId& id, const GroupPlan& plan) : device_(device), plan_(plan) {
    check_nccl(ncclCommInitRank(&communicator_, plan.ranks, id, plan.rank), "GPUs cannot connect to each other");
    device_.add_check(*this);
  }
  // Aborts if work is pending: it never ends if another process is gone.
  ~NcclGroup() override {
    device_.remove_check(*this);
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
  void check(double waited_seconds) override {
    if (communicator_ == nullptr) return;
    ncclResult_t problem = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(communicator_, &problem), "how its work goes");
    const bool has_failed = problem != ncclSuccess && problem != ncclInProgress;
    if (!has_failed && waited_seconds <= plan_.timeout_seconds) return;
    const std::string what = plan_.waits_for ? plan_.waits_for() : "a sum over all GPUs";
    if (has_failed) give_up(what, ncclGetErrorString(problem));
    if (!what.empty()) give_up(what, fmt::format("not done within {:.0f} s (--comm-timeout)", plan_.timeout_seconds));
  }
  [[noreturn]] void give_up(const std::string& what, const std::string& why) {
    ncclCommAbort(std::exchange(communicator_, nullptr));
    fail(ErrorKind::failed, "NCCL: {}: {}: a worker is gone or stuck; set NCCL_DEBUG=INFO for details",
         what.empty() ? "between transfers" : what, why);
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
  GroupPlan plan_;
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
