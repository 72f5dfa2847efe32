// Measures a GPU's peak: one large matrix product by cuBLAS, one large copy.
#include <algorithm>
#include <vector>

#include "trireme/backend/cuda/device.hpp"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/matrix_product.hpp"
#include "trireme/base/random.hpp"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kSide = 8192;
constexpr std::int64_t kCopiedBytes = 1LL << 30;
constexpr int kRuns = 5;

// Random numbers: a GPU is unrealistically fast on zeros.
std::vector<std::byte> random_rows(DataType type) {
  constexpr std::int64_t kRows = 64;
  const TensorDesc desc{type, {kRows, kSide}, Layout::plain(2)};
  std::vector<float> random(desc.shape.elements());
  fill_uniform(random, -1.0f, 1.0f, 1);
  std::vector<std::byte> rows(desc.bytes());
  pack(desc, random.data(), rows.data());
  return rows;
}

template <typename Work>
double shortest(CudaDevice& device, const Work& work) {
  work();
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    device.record_time(0);
    work();
    device.record_time(1);
    best = std::min(best, device.seconds_between(0, 1));
  }
  return best;
}

double product_seconds(CudaDevice& device, Precision precision) {
  const DataType type = activation_type(precision);
  const MatrixProduct product(
      {.rows = kSide, .columns = kSide, .inner = kSide, .type = type, .dst_type = type, .precision = precision});
  const auto algorithms = product.algorithms(device.cublas(), 1);
  if (algorithms.empty()) return 0;
  const std::int64_t bytes = kSide * kSide * size_of(type);
  const auto allocate = [&](std::int64_t size) { return device.allocate(size, "measuring the peak"); };
  const DeviceMemory a = allocate(bytes), b = allocate(bytes), dst = allocate(bytes),
                     workspace = allocate(algorithms[0].workspace_bytes);
  const std::vector<std::byte> rows = random_rows(type);
  const auto rows_bytes = std::ssize(rows);
  for (std::int64_t at = 0; at < bytes; at += rows_bytes) {
    device.upload(a.at(at), rows.data(), rows_bytes);
    device.upload(b.at(at), rows.data(), rows_bytes);
  }
  return shortest(device, [&] {
    product.run(device.cublas(), algorithms[0],
                {.a = a.at(0), .b = b.at(0), .dst = dst.at(0), .workspace = workspace.at(0)}, device.stream());
  });
}

double copy_seconds(CudaDevice& device) {
  const DeviceMemory from = device.allocate(kCopiedBytes, "measuring the peak"),
                     to = device.allocate(kCopiedBytes, "measuring the peak");
  return shortest(device, [&] { device.copy(to.at(0), from.at(0), kCopiedBytes); });
}

}  // namespace

ComputeDevice::Peak CudaDevice::measure_peak(Precision precision) {
  const double flops = 2.0 * kSide * kSide * kSide;
  const double seconds = product_seconds(*this, precision);
  return {.flops_per_second = seconds > 0 ? flops / seconds : 0,
          .bytes_per_second = 2.0 * static_cast<double>(kCopiedBytes) / copy_seconds(*this)};
}

}  // namespace trireme::cuda
