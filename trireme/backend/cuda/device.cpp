#include "trireme/backend/cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "trireme/backend/backends.hpp"
#include "trireme/backend/cuda/library.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/units.hpp"

namespace trireme::cuda {
namespace {

class StepGraph final : public DeviceGraph {
 public:
  StepGraph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t code = cudaGraphInstantiate(&runnable_, graph, 0);
    cudaGraphDestroy(graph);
    check(code, "a recorded step cannot be instantiated");
  }
  ~StepGraph() override { cudaGraphExecDestroy(runnable_); }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;
  void launch() override { check(cudaGraphLaunch(runnable_, stream_), "a captured step cannot be launched"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t runnable_ = nullptr;
};

}  // namespace

Gpus find_gpus() {
  Gpus gpus;
  const cudaError_t code = cudaGetDeviceCount(&gpus.count);
  if (code == cudaSuccess && gpus.count > 0) return gpus;
  gpus.count = 0;
  gpus.problem = code == cudaSuccess ? "no NVIDIA GPU" : cudaGetErrorString(code);
  return gpus;
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> versions{
      {"CUDA", fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)},
      {"cuDNN", fmt::format("{}.{}.{}", CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL)},
      {"cuBLAS", fmt::format("{}.{}.{}", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH)},
  };
  if constexpr (TRIREME_WITH_NCCL) versions.emplace_back("NCCL", nccl_version());
  return versions;
}

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal) {
  const Gpus gpus = find_gpus();
  if (gpus.count == 0) {
    fail(ErrorKind::unavailable,
         "--device cuda: this machine has no usable GPU: {}; `nvidia-smi` shows what the driver sees; --device cpu "
         "works everywhere",
         gpus.problem);
  }
  if (ordinal < 0 || ordinal >= gpus.count) {
    bad_input("--device cuda:{}: this machine has {} GPU{}, counted from 0", ordinal, gpus.count,
              gpus.count == 1 ? "" : "s");
  }
  check(cudaSetDevice(ordinal_), "the GPU cannot be used");
  check(cudaGetDeviceProperties(&properties_, ordinal_), "the GPU's properties");
  while (std::ssize(streams_) < kStreams) add_stream();
  check(cublasLtCreate(&cublas_), "no handle");
  void* values = nullptr;
  check(cudaMalloc(&values, sizeof(RunValues)), "memory for the values of a run");
  run_values_ = static_cast<RunValues*>(values);
  check(cudaMemset(run_values_, 0, sizeof(RunValues)), "memory cannot be cleared");  // like the staged ones
  staged_values_ = allocate_staging(sizeof(RunValues));
}

CudaDevice::~CudaDevice() {
  cudaDeviceSynchronize();
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  for (cudaEvent_t event : times_) cudaEventDestroy(event);
  for (cudnnHandle_t handle : cudnn_) {
    if (handle != nullptr) cudnnDestroy(handle);
  }
  cublasLtDestroy(cublas_);
  cudaFree(run_values_);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

std::string CudaDevice::name() const { return fmt::format("cuda:{} ({})", ordinal_, properties_.name); }

std::string CudaDevice::identity() const {
  std::string text;
  for (const char byte : properties_.uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string CudaDevice::versions() const {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return fmt::format("{}, driver for CUDA {}, CUDA {}, cuDNN {}, cuBLAS {}", properties_.name, driver, runtime,
                     cudnnGetVersion(), cublasLtGetVersion());
}

std::int64_t CudaDevice::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "how much memory is free");
  return static_cast<std::int64_t>(free);
}

std::vector<std::pair<std::string, std::string>> CudaDevice::facts() {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, ordinal_), "an attribute of the GPU");
    return value;
  };
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return {{"name", properties_.name},
          {"compute_capability", fmt::format("{}.{}", properties_.major, properties_.minor)},
          {"multiprocessors", fmt::format("{}", properties_.multiProcessorCount)},
          {"memory_bytes", fmt::format("{}", properties_.totalGlobalMem)},
          {"l2_bytes", fmt::format("{}", properties_.l2CacheSize)},
          {"clock_mhz", fmt::format("{:.0f}", clock_hertz() / 1e6)},
          {"most_clock_khz", fmt::format("{}", attribute(cudaDevAttrClockRate))},
          {"most_memory_clock_khz", fmt::format("{}", attribute(cudaDevAttrMemoryClockRate))},
          {"driver_for_cuda", fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)}};
}

DeviceMemory CudaDevice::allocate(std::int64_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which the next call would report
    const auto free = static_cast<double>(free_bytes());
    throw OutOfMemory(
        fmt::format("{}: cannot allocate {} for {}: {} of {} is free", name(), format_bytes(static_cast<double>(bytes)),
                    what, format_bytes(free), format_bytes(static_cast<double>(properties_.totalGlobalMem))),
        free / static_cast<double>(bytes));
  }
  check(code, "memory cannot be allocated");
  check(cudaMemset(memory, 0, bytes), "memory cannot be cleared");
  check(cudaStreamSynchronize(nullptr), "memory cannot be cleared");  // the device's streams do not wait for this one
  *bytes_ += bytes;
  const auto free = [allocated = bytes_, bytes](void* p) {
    cudaFree(p);
    *allocated -= bytes;
  };
  return {std::shared_ptr<void>(memory, free), bytes};
}

DeviceMemory CudaDevice::allocate_staging(std::int64_t bytes) {
  if (bytes == 0) return {};
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "pinned memory of the host");
  std::memset(memory, 0, bytes);
  return {std::shared_ptr<void>(memory, [](void* p) { cudaFreeHost(p); }), bytes};
}

DeviceMemory CudaDevice::use_as_staging(std::shared_ptr<void> memory, std::int64_t bytes) {
  if (cudaHostRegister(memory.get(), bytes, cudaHostRegisterDefault) != cudaSuccess) {
    cudaGetLastError();  // copies also work unpinned, just not asynchronously
    return {std::move(memory), bytes};
  }
  void* const address = memory.get();
  return {std::shared_ptr<void>(address, [memory = std::move(memory)](void* p) { cudaHostUnregister(p); }), bytes};
}

void CudaDevice::upload(void* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "upload");
}

void CudaDevice::download(void* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "download");
}

void CudaDevice::copy(void* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "a copy of a tensor");
}

int CudaDevice::add_stream() {
  check(cudaStreamCreateWithFlags(&streams_.emplace_back(), cudaStreamNonBlocking), "a stream");
  return static_cast<int>(std::ssize(streams_)) - 1;
}

void CudaDevice::wait_for_stream(cudaStream_t stream) {
  if (checks_.empty()) return check(cudaStreamSynchronize(stream), "work on the GPU");
  constexpr auto kBetweenChecks = std::chrono::milliseconds(10);
  const auto start = SteadyClock::now();
  auto next_check = start + kBetweenChecks;
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state != cudaErrorNotReady) return check(state, "work on the GPU");
    std::this_thread::yield();
    if (SteadyClock::now() < next_check) continue;
    next_check = SteadyClock::now() + kBetweenChecks;
    for (GroupCheck* const group : checks_) group->check(seconds_since(start));
  }
}

bool CudaDevice::is_idle() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](cudaStream_t stream) { return cudaStreamQuery(stream) == cudaSuccess; });
}

void CudaDevice::synchronize() {
  for (cudaStream_t stream : streams_) wait_for_stream(stream);
  check(cudaGetLastError(), "work on the GPU");
}

void CudaDevice::set_context(const RunContext& context) {
  auto* const staged = static_cast<RunValues*>(staged_values_.at(0));
  signals_in_run_ = 0;  // a run begins
  const RunValues values{context.seed, context.step, context.sample_offset};
  if (std::memcmp(staged, &values, sizeof(values)) == 0) return;
  wait_for_stream(stream());  // the last upload may still read from here
  *staged = values;
  upload(run_values_, staged, sizeof(values));
}

std::unique_ptr<DeviceGraph> CudaDevice::capture(const std::function<void()>& work) {
  synchronize();
  check(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal), "capturing cannot begin");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(streams_[0], &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(streams_[0], &graph), "capturing a step");
  return std::make_unique<StepGraph>(graph, streams_[0]);
}

int CudaDevice::record_event() {
  // So many that none is reused in its own run or the next one, when somebody may still ask for it.
  constexpr std::size_t kFewestSignals = 8192;
  most_signals_in_run_ = std::max(most_signals_in_run_, ++signals_in_run_);
  if (next_signal_ == events_.size() && events_.size() >= std::max(kFewestSignals, 2 * most_signals_in_run_)) {
    next_signal_ = 0;
  }
  if (next_signal_ == events_.size()) {
    // A waiting host thread leaves its core to others.
    check(cudaEventCreateWithFlags(&events_.emplace_back(), cudaEventDisableTiming | cudaEventBlockingSync),
          "an event");
  }
  const std::size_t index = next_signal_++;
  check(cudaEventRecord(events_[index], stream()), "an event");
  return static_cast<int>(index);
}

void CudaDevice::wait_event(int event) {
  check(cudaStreamWaitEvent(stream(), events_[event], 0), "waiting for an event");
}

void CudaDevice::wait_event_on_host(int event) { check(cudaEventSynchronize(events_[event]), "work on the GPU"); }

bool CudaDevice::has_passed(int event) {
  const cudaError_t state = cudaEventQuery(events_[event]);
  if (state == cudaErrorNotReady) return false;
  check(state, "work on the GPU");
  return true;
}

void CudaDevice::record_time(int index) {
  while (times_.size() <= static_cast<std::size_t>(index)) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "an event");
    times_.push_back(event);
  }
  check(cudaEventRecord(times_[index], stream()), "an event");
}

double CudaDevice::seconds_between(int first, int second) {
  cudaEvent_t const end = times_[second];
  check(cudaEventSynchronize(end), "waiting for an event");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, times_[first], end), "the time between events");
  return milliseconds / 1e3;
}

cudnnHandle_t CudaDevice::cudnn() const {
  cudnnHandle_t& handle = cudnn_[current_];
  if (handle == nullptr) {
    check(cudnnCreate(&handle), "no handle");
    check(cudnnSetStream(handle, stream()), "the stream cannot be set");
  }
  return handle;
}

}  // namespace trireme::cuda
