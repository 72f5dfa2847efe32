// What a GPU can do at most: one large matrix product through cuBLAS, one large copy.
#include <algorithm>
#include <vector>

#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/device.hpp"
#include "trireme/base/random.hpp"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kSide = 8192;
constexpr int kRuns = 5;

// Rows of f32 or bf16 as cuBLAS describes them, freed with this.
class MatrixLayout {
 public:
  explicit MatrixLayout(cudaDataType_t type) {
    check(cublasLtMatrixLayoutCreate(&layout_, type, kSide, kSide, kSide), "a matrix");
  }
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Product {
 public:
  explicit Product(cublasComputeType_t type) {
    check(cublasLtMatmulDescCreate(&product_, type, CUDA_R_32F), "a product");
  }
  ~Product() { cublasLtMatmulDescDestroy(product_); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  cublasLtMatmulDesc_t get() const { return product_; }

 private:
  cublasLtMatmulDesc_t product_ = nullptr;
};

template <typename Work>
double shortest(CudaDevice& device, const Work& work) {
  work();
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    device.mark(0);
    work();
    device.mark(1);
    best = std::min(best, device.seconds_between(0, 1));
  }
  return best;
}

}  // namespace

ComputeDevice::Peak CudaDevice::measure_peak(Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  const cudaDataType_t type = bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const std::int64_t bytes = kSide * kSide * (bf16 ? 2 : 4);
  const DeviceMemory a = allocate(bytes, "measuring the peak"), b = allocate(bytes, "measuring the peak"),
                     c = allocate(bytes, "measuring the peak");
  // Random numbers: on zeros a GPU is faster than it will be.
  std::vector<float> random(static_cast<std::size_t>(bytes) / sizeof(float));
  fill_uniform(random, -1.0f, 1.0f, 1);
  upload(a.at(0), random.data(), bytes);
  upload(b.at(0), random.data(), bytes);
  synchronize();
  const Product product(precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
  const MatrixLayout matrix(type);
  const float one = 1, zero = 0;
  const double seconds = shortest(*this, [&] {
    check(cublasLtMatmul(cublas(), product.get(), &one, a.at(0), matrix.get(), b.at(0), matrix.get(), &zero, c.at(0),
                         matrix.get(), c.at(0), matrix.get(), nullptr, nullptr, 0, stream()),
          "a matrix product");
  });
  constexpr std::int64_t kCopied = 1LL << 30;
  const DeviceMemory from = allocate(kCopied, "measuring the peak"), to = allocate(kCopied, "measuring the peak");
  const double copy_seconds = shortest(*this, [&] {
    check(cudaMemcpyAsync(to.at(0), from.at(0), kCopied, cudaMemcpyDeviceToDevice, stream()), "a copy");
  });
  return {.flops_per_second = 2.0 * kSide * kSide * kSide / seconds, .bytes_per_second = 2.0 * kCopied / copy_seconds};
}

}  // namespace trireme::cuda
