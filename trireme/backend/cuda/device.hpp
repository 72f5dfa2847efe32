// One NVIDIA GPU: memory, streams, library handles, and steps captured as CUDA graphs. Made by the cuda backend.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "trireme/features.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::cuda {

// Values that change from run to run, in GPU memory because a captured step keeps its arguments. See set_context().
struct RunValues {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // updates of the variables done before this run
  std::int64_t sample_offset = 0;
};

std::string nccl_version();  // of the build

// Asked now and then by a host that waits for the GPU, whose work may wait for other processes.
class GroupCheck {
 public:
  virtual ~GroupCheck() = default;
  virtual void check(double waited_seconds) = 0;  // throws if the group has failed, or has waited too long
};

class CudaDevice final : public ComputeDevice {
 public:
  explicit CudaDevice(int ordinal);  // Error(unavailable) if there is no GPU, (bad_input) if not so many
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() const override;
  std::string identity() const override;
  DeviceMemory allocate(std::int64_t bytes, std::string_view what) override;
  DeviceMemory allocate_staging(std::int64_t bytes) override;
  DeviceMemory use_as_staging(std::shared_ptr<void> memory, std::int64_t bytes) override;
  void upload(void* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void synchronize() override;
  void set_context(const RunContext& context) override;
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override;
  int streams() const override { return kComputeStreams; }
  void set_stream(int stream) override { current_ = stream; }
  int outward_stream() const override { return kComputeStreams; }
  int inward_stream() const override { return kComputeStreams + 1; }
  int input_stream() const override { return kComputeStreams + 2; }
  int add_stream() override;
  int record_event() override;
  void wait_event(int event) override;
  void wait_event_on_host(int event) override;
  bool has_passed(int event) override;
#if TRIREME_WITH_NCCL  // nccl_group.cpp; a group can have each GPU only once
  bool has_groups() const override;
  std::string name_group() override;
  std::unique_ptr<DeviceGroup> join_group(const GroupPlan& plan) override;
#endif
  Peak measure_peak(Precision precision) override;
  std::int64_t free_bytes() const override;
  std::int64_t allocated_bytes() const override { return *bytes_; }
  std::vector<std::pair<std::string, std::string>> facts() override;
  void record_time(int index) override;
  double seconds_between(int first, int second) override;

  void add_check(GroupCheck& check) { checks_.push_back(&check); }
  void remove_check(GroupCheck& check) { std::erase(checks_, &check); }
  bool is_idle() const;

  // For kernels.
  cudaStream_t stream() const { return streams_[current_]; }
  cudnnHandle_t cudnn() const;  // of the current stream
  cublasLtHandle_t cublas() const { return cublas_; }
  const RunValues* run_values() const { return run_values_; }  // in GPU memory
  int multiprocessors() const { return properties_.multiProcessorCount; }
  const cudaDeviceProp& properties() const { return properties_; }
  std::string versions() const;  // GPU, driver, CUDA, cuDNN, cuBLAS: what timings depend on

 private:
  double clock_hertz();  // clock.cu
  void wait_for_stream(cudaStream_t stream);

  static constexpr int kComputeStreams = 4;
  static constexpr int kStreams = kComputeStreams + 3;  // plus two for exchange, one for inputs

  int ordinal_;
  cudaDeviceProp properties_{};
  int current_ = 0;
  std::shared_ptr<std::int64_t> bytes_ = std::make_shared<std::int64_t>(0);  // allocated; memory may outlive the device
  std::vector<cudaStream_t> streams_;
  mutable std::array<cudnnHandle_t, kStreams> cudnn_{};
  cublasLtHandle_t cublas_ = nullptr;
  RunValues* run_values_ = nullptr;
  DeviceMemory staged_values_;
  std::vector<cudaEvent_t> events_;  // used in turn
  std::size_t next_signal_ = 0, signals_in_run_ = 0, most_signals_in_run_ = 0;
  std::vector<cudaEvent_t> times_;
  std::vector<GroupCheck*> checks_;
};

}  // namespace trireme::cuda
