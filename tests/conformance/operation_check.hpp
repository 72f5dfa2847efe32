// One operation under two backends: the same values go through the kernels of the reference backend and of the tested
// one, in several layouts of the incoming tensors, and the results are compared.
//
// Tolerance. A result is a sum of n terms of size at most m; the reference adds in double, so the difference is the
// rounding of the other side. Terms have random signs, so a partial sum is about sqrt(n)·m and one addition rounds it
// by at most u = 2^-24 of that; n such roundings of random sign come to u·sqrt(n)·sqrt(n)·m = u·n·m. Four times that is
// allowed, and sixteen units of the result itself for what happens to it after the sum. One term that is missing or
// taken twice changes a result by about m/4: that is seen up to n of about a million. Functions that the library
// approximates (exp, erf, ...) get a relative part of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/backend/tuner.hpp"
#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/host_tensor.hpp"
#include "trireme/graph/graph.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::testkit {

struct Tolerance {
  double terms = 1;
  double magnitude = 1;
  double relative = 0;
  double at(double expected) const;
};

// How the operation meets its kernel: layouts of the inputs that have four axes, and what is asked for.
struct Variant {
  std::string name;
  Layout activations = Layout::plain(4);
  DataFormat format = DataFormat::automatic;
  bool variables_open = true;  // else they are there in plain order
  bool wish_plain = false;     // the first output is wished for in plain order
  bool training = true;
  Precision precision = Precision::fp32;  // activations come in its stored_type()
};
// What activations are stored as.
DataType stored_type(Precision precision);
Layout blocked(std::int64_t size);
// plain, channels_last, blocked by 16 and by 8: whatever a producer may give.
std::vector<Variant> layout_variants();
// Blocked by 16, with open weights and a fixed layout of them, wishes and inference.
std::vector<Variant> blocked_variants();
// All of these, and data_format nchw and nhwc.
std::vector<Variant> convolution_variants();

// A node of a graph of its own, with values for its inputs.
class OperationCase {
 public:
  // Inputs that the operation writes become variables, and so do those listed.
  OperationCase(Operation op, std::vector<HostTensor> values, std::vector<int> variables = {});
  const Node& node() const { return *node_; }
  const std::vector<HostTensor>& values() const { return values_; }
  bool is_variable(std::size_t input) const { return variable_[input]; }
  std::string describe() const;

 private:
  std::unique_ptr<Graph> graph_;
  const Node* node_;
  std::vector<HostTensor> values_;
  std::vector<bool> variable_;
};

// An operation, and how many products its sums have.
struct SummedOperation {
  OperationCase operation;
  double terms;
};

// A kernel with memory of its own, bound and ready. Outputs and scratch begin as NaN; both have exactly the bytes asked
// for, so that a sanitizer sees every step beyond.
class KernelRun {
 public:
  // in_place: the pair of the choice (by position) that shares memory; −1: none.
  KernelRun(const Backend& backend, const OperationCase& operation, const Variant& variant, int in_place = -1);
  void run(const RunContext& context = {});

  HostTensor input(std::size_t i) const;
  HostTensor output(std::size_t i) const;
  HostTensor state(std::size_t pair, std::size_t i) const;
  // Whether the memory of output i holds zeros wherever no element lies.
  bool padding_is_zero(std::size_t i) const;
  const KernelChoice& choice() const { return choice_; }

 private:
  void* allocate(std::int64_t bytes, const void* value = nullptr);
  HostTensor read(const TensorDesc& desc, const void* from) const;

  ComputeDevice& device_;
  KernelChoice choice_;
  std::vector<TensorDesc> inputs_, outputs_;
  std::vector<std::shared_ptr<void>> memories_;
  KernelMemory bound_;
  std::vector<TensorDesc> states_;
};

// Runs the case on both backends in every variant, with every way of sharing memory that the kernel offers and with
// every kernel that the tuner may choose, and fails the test with one line that says how to repeat it where results
// differ.
void expect_same(const OperationCase& operation, const std::vector<Variant>& variants, const Tolerance& tolerance);
void expect_same(const OperationCase& operation, const Tolerance& tolerance);
// The same with the one kernel that the options force. Returns the number of variants that it is offered in.
int expect_same_forced(const OperationCase& operation, const std::vector<Variant>& variants, const Tolerance& tolerance,
                       const TuningOptions& options);

// The Winograd convolution F(4x4, 3x3) computes tiles of 4x4 outputs by transforms whose coefficients reach 8 in the
// data's and 1/24 .. 1 in the weights': intermediate values are up to some tens of times larger than the results, and
// the rounding of fp32 grows with them. Lavin and Gray report errors one to two orders of magnitude above the direct
// sum's. What expect_same allows is this many times the direct sum's.
constexpr double kWinogradRounding = 10;

// "" or the first difference.
std::string difference(const HostTensor& actual, const HostTensor& expected, const Tolerance& tolerance);

// What the backend's reorder makes of a tensor that is stored so.
std::vector<std::byte> reordered(const Backend& backend, const TensorDesc& src, const TensorDesc& dst,
                                 std::span<const std::byte> stored);

// Values that depend on the seed alone.
HostTensor random_tensor(Shape shape, std::uint64_t seed, float low = -1, float high = 1);
HostTensor random_labels(std::int64_t count, std::int32_t classes, std::uint64_t seed);

// The backend under test: onednn, or the one that TRIREME_TESTED_BACKEND names. Null where this build or this machine
// has none (the tests are skipped then).
std::string tested_backend_name();
std::shared_ptr<Backend> tested_backend();

}  // namespace trireme::testkit
