// Gradients against finite differences: builds a small graph from variables with chosen values, and compares what
// gradients() gives with how the outputs really change when one element of a variable is moved a little.
// Used by gradient_check_test.cpp.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "trireme/graph/functions.hpp"
#include "trireme/plan/program.hpp"

namespace trireme::testkit {

// Makes the variables of a case. A function with a kink is checked away from it, so that the difference does not
// straddle it; the kinds of values serve that.
class CaseBuilder {
 public:
  explicit CaseBuilder(Graph& graph_to_build) : graph(graph_to_build) {}

  Tensor uniform(Shape shape, float low = -1, float high = 1);
  // Between 0.5 and 2: for logarithms, roots and divisors.
  Tensor positive(Shape shape) { return uniform(std::move(shape), 0.5f, 2); }
  // Of both signs, at least 0.2 from 0.
  Tensor away_from_zero(Shape shape);
  // All different by 0.1 or more, in random order around offset: for maxima.
  Tensor distinct(Shape shape, float offset = 0);
  // Not differentiated.
  Tensor fixed(Shape shape, float low, float high);
  Tensor labels(const std::vector<std::int32_t>& values);

  // Says that the output has a kink where this tensor is 0: the check refuses values too near to it.
  Tensor kink(Tensor tensor);

  struct Checked {
    Tensor variable;
    HostTensor value;
  };
  Graph& graph;
  std::vector<Checked> variables;
  std::vector<Tensor> kinks;

 private:
  Tensor checked(HostTensor value);
  std::uint64_t next_key();

  std::uint64_t keys_ = 0;
};

struct GradientCase {
  std::string name;
  std::function<std::vector<Tensor>(CaseBuilder&)> build;  // gives the outputs
};
inline void PrintTo(const GradientCase& gradient_case, std::ostream* out) { *out << gradient_case.name; }

// One line for each element of each variable whose gradient on the backend is not what finite differences say; none if
// all is well. A variable that hardly moves the outputs is reported too: it would check nothing.
std::vector<std::string> gradient_mismatches(const GradientCase& gradient_case, const std::string& backend,
                                             const CompileOptions& options);

}  // namespace trireme::testkit
