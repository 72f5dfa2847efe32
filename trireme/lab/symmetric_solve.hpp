// Small systems of equations with a symmetric positive definite matrix, by Cholesky's factors: what the models of
// `tune` are fitted with. Tens of unknowns; nothing here is made for more.
#pragma once

#include <vector>

namespace trireme::lab {

class CholeskyFactor {
 public:
  // The lower half is read. A matrix that is not positive definite is a mistake of the caller: std::invalid_argument.
  explicit CholeskyFactor(std::vector<std::vector<double>> matrix);

  std::vector<double> solve(std::vector<double> right) const;        // matrix x = right
  std::vector<double> solve_lower(std::vector<double> right) const;  // factor x = right

 private:
  std::vector<std::vector<double>> lower_;
};

}  // namespace trireme::lab
