#include "trireme/lab/symmetric_solve.hpp"

#include <cmath>
#include <stdexcept>

namespace trireme::lab {

CholeskyFactor::CholeskyFactor(std::vector<std::vector<double>> matrix) : lower_(std::move(matrix)) {
  for (std::size_t i = 0; i < lower_.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = lower_[i][j];
      for (std::size_t k = 0; k < j; ++k) value -= lower_[i][k] * lower_[j][k];
      if (i == j && !(value > 0)) throw std::invalid_argument("the matrix is not positive definite");
      lower_[i][j] = i == j ? std::sqrt(value) : value / lower_[j][j];
    }
  }
}

std::vector<double> CholeskyFactor::solve_lower(std::vector<double> right) const {
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) right[i] -= lower_[i][j] * right[j];
    right[i] /= lower_[i][i];
  }
  return right;
}

std::vector<double> CholeskyFactor::solve(std::vector<double> right) const {
  right = solve_lower(std::move(right));
  for (std::size_t i = right.size(); i-- > 0;) {
    for (std::size_t j = i + 1; j < right.size(); ++j) right[i] -= lower_[j][i] * right[j];
    right[i] /= lower_[i][i];
  }
  return right;
}

}  // namespace trireme::lab
