#include "convolution_case.hpp"

#include <omp.h>

namespace trireme::testkit {

Shape ConvolutionCase::weights() const { return {out, src[1] / groups, window.kernel[0], window.kernel[1]}; }

Shape ConvolutionCase::dst() const {
  return {src[0], out, op::window_output(window, 0, src[2]), op::window_output(window, 1, src[3])};
}

void PrintTo(const ConvolutionCase& c, std::ostream* stream) { *stream << c.name; }

SummedOperation forward(const ConvolutionCase& c, bool bias, bool add, op::Activation activation) {
  std::vector<HostTensor> values{random_tensor(c.src, 1), random_tensor(c.weights(), 2)};
  if (bias) values.push_back(random_tensor({c.out}, 3));
  if (add) values.push_back(random_tensor(c.dst(), 4));
  const op::Convolution operation{
      .window = c.window, .groups = c.groups, .bias = bias, .add = add, .activation = activation};
  const std::int64_t terms = c.weights().elements() / c.out + (bias ? 1 : 0) + (add ? 1 : 0);
  return {OperationCase(operation, std::move(values), {1}), static_cast<double>(terms)};
}

SummedOperation backward_data(const ConvolutionCase& c) {
  const op::ConvolutionBackwardData operation{.window = c.window, .groups = c.groups, .src_shape = c.src};
  return {OperationCase(operation, {random_tensor(c.dst(), 5), random_tensor(c.weights(), 6)}, {1}),
          static_cast<double>(c.weights().elements() / c.src[1])};
}

SummedOperation backward_weights(const ConvolutionCase& c, bool bias) {
  const op::ConvolutionBackwardWeights operation{
      .window = c.window, .groups = c.groups, .weights_shape = c.weights(), .bias = bias};
  return {OperationCase(operation, {random_tensor(c.src, 7), random_tensor(c.dst(), 8)}),
          static_cast<double>(c.dst().elements() / c.out)};
}

std::vector<SummedOperation> forward_forms(const ConvolutionCase& c) {
  std::vector<SummedOperation> forms;
  forms.push_back(forward(c, false, false, op::Activation::none));
  for (const bool bias : {false, true}) {
    for (const bool add : {false, true}) forms.push_back(forward(c, bias, add, op::Activation::relu));
  }
  return forms;
}

std::vector<SummedOperation> backward_weights_forms(const ConvolutionCase& c) {
  std::vector<SummedOperation> forms;
  for (const bool bias : {false, true}) forms.push_back(backward_weights(c, bias));
  return forms;
}

void ConvolutionTest::SetUp() {
  if (tested_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  threads_before_ = omp_get_max_threads();
  omp_set_num_threads(GetParam().threads);
}

void ConvolutionTest::TearDown() { omp_set_num_threads(threads_before_); }

}  // namespace trireme::testkit
