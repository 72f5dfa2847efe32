#include "trireme/backend/cuda/nccl_group.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <map>

#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fail(ErrorKind::failed, "NCCL: {}: {}; NCCL_DEBUG=INFO in the environment tells more", what,
       ncclGetErrorString(result));
}

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(CudaDevice& device, const ncclUniqueId& id, int rank, int ranks) : device_(device) {
    check(ncclCommInitRank(&communicator_, ranks, id, rank), "GPUs cannot find each other");
  }
  // Where another process is gone, what is under way never ends.
  ~NcclGroup() override {
    if (cudaStreamQuery(device_.stream()) != cudaSuccess) {
      ncclCommAbort(communicator_);
      return;
    }
    for (const auto& [factor, operation] : operations_) ncclRedOpDestroy(operation, communicator_);
    ncclCommDestroy(communicator_);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void sum(float* values, std::int64_t elements, const float* factor) override {
    check(ncclAllReduce(values, values, static_cast<std::size_t>(elements), ncclFloat, weighted_sum(factor),
                        communicator_, device_.stream()),
          "a sum cannot be started");
  }

 private:
  // The factor is read when a sum begins, so that a recorded one follows it.
  ncclRedOp_t weighted_sum(const float* factor) {
    const auto found = operations_.find(factor);
    if (found != operations_.end()) return found->second;
    ncclRedOp_t operation = ncclSum;
    check(ncclRedOpCreatePreMulSum(&operation, const_cast<float*>(factor), ncclFloat, ncclScalarDevice, communicator_),
          "a weighted sum");
    operations_.emplace(factor, operation);
    return operation;
  }

  CudaDevice& device_;
  ncclComm_t communicator_ = nullptr;
  std::map<const float*, ncclRedOp_t> operations_;
};

}  // namespace

std::string name_nccl_group() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "a group of GPUs cannot be named");
  return {id.internal, sizeof(id.internal)};
}

std::unique_ptr<DeviceGroup> join_nccl_group(CudaDevice& device, const std::string& name, int rank, int ranks) {
  ncclUniqueId id;
  if (name.size() != sizeof(id.internal)) {
    fail(ErrorKind::failed, "a group of GPUs has a name of {} bytes, this is one of {}", sizeof(id.internal),
         name.size());
  }
  std::memcpy(id.internal, name.data(), name.size());
  return std::make_unique<NcclGroup>(device, id, rank, ranks);
}

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

}  // namespace trireme::cuda
