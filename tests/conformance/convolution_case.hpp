// Convolutions by their shapes, as operations with values in all their forms. Used by the tests of convolutions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operation_check.hpp"

namespace trireme::testkit {

struct ConvolutionCase {
  const char* name;
  Shape src;
  std::int64_t out;
  op::Window window;
  std::int64_t groups = 1;
  int threads = 2;

  Shape weights() const;
  Shape dst() const;
};
void PrintTo(const ConvolutionCase& c, std::ostream* stream);

SummedOperation forward(const ConvolutionCase& c, bool bias, bool add, op::Activation activation);
SummedOperation backward_data(const ConvolutionCase& c);
SummedOperation backward_weights(const ConvolutionCase& c, bool bias);
// Alone and with all that can be joined to it.
std::vector<SummedOperation> forward_forms(const ConvolutionCase& c);
std::vector<SummedOperation> backward_weights_forms(const ConvolutionCase& c);

// Runs with the case's number of threads.
class ConvolutionTest : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  int threads_before_ = 1;
};

inline std::string case_name(const ::testing::TestParamInfo<ConvolutionCase>& tested) { return tested.param.name; }

}  // namespace trireme::testkit
