// GPUs of several processes that sum in each other's memory, by NCCL. Made by CudaDevice, in builds that found NCCL.
#pragma once

#include <memory>
#include <string>

#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

bool has_nccl();  // this machine
std::string name_nccl_group();
// Collective. A GPU can be in a group once.
std::unique_ptr<DeviceGroup> join_nccl_group(CudaDevice& device, const GroupPlan& plan);
std::string nccl_version();  // that the build found

}  // namespace trireme::cuda
