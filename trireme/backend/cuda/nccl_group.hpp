// A group of GPUs in several processes that sum through NCCL. Made by CudaDevice in builds with NCCL.
#pragma once

#include <memory>
#include <string>

#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

bool has_nccl();  // on this machine
std::string name_nccl_group();
// Collective. A group can have each GPU only once.
std::unique_ptr<DeviceGroup> join_nccl_group(CudaDevice& device, const GroupPlan& plan);
std::string nccl_version();  // of the build

}  // namespace trireme::cuda
