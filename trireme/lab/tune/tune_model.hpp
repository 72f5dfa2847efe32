// The models that guide `tune`: the time of a step for given workers, threads and images, from its parts (work that
// threads share, work they do not, gradients over memory or network, a fixed cost per exchange), and the model's error
// at one configuration, learned from the trials of others.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace trireme::lab {

// Solves small systems (tens of unknowns) with a symmetric positive definite matrix, to fit the models.
class CholeskyFactor {
 public:
  // Reads the lower half. std::invalid_argument if the matrix is not positive definite, a caller's error.
  explicit CholeskyFactor(std::vector<std::vector<double>> matrix);

  std::vector<double> solve(std::vector<double> right) const;        // matrix x = right
  std::vector<double> solve_lower(std::vector<double> right) const;  // factor x = right

 private:
  std::vector<std::vector<double>> lower_;
};

// What determines a step's time in the model; per worker unless stated otherwise.
struct WorkLayout {
  double workers = 1, servers = 0;                   // in total
  double threads = 1;                                // compute threads
  double batch = 1;                                  // images
  double bucket_bytes = 1;                           // gradients that travel together
  double images() const { return workers * batch; }  // per step, all workers
};

struct CostFacts {
  double flops_per_image = 0;
  double gradient_bytes = 0;    // 0: nothing is exchanged
  double flops_per_second = 0;  // of one core
  double bytes_per_second = 0;  // of the memory
};

struct TimedLayout {
  WorkLayout layout;
  double step_seconds = 0;
};

// Starts from the network's needs and the machine's speeds, and is fitted to the trials as they come.
class StepCostModel {
 public:
  explicit StepCostModel(const CostFacts& facts);

  void fit(std::span<const TimedLayout> trials);  // to these only; the facts fill gaps
  double step_seconds(const WorkLayout& layout) const;
  std::string text() const;  // "8.1 ms per image and core, 3 % of it not shared by threads; ..."

 private:
  static constexpr std::size_t kTerms = 5;
  using Terms = std::array<double, kTerms>;
  Terms terms(const WorkLayout& layout) const;  // seconds according to the facts

  CostFacts facts_;
  Terms factors_;  // fitted to the trials
};

// A configuration as a point: its value on each axis. Distance between numbers is by ratio; texts are equal or not.
using SettingPoint = std::vector<std::variant<double, std::string>>;

struct KnownError {
  SettingPoint point;
  double error = 0;  // log(measured / modeled)
  double noise = 0;  // its standard deviation
};

// The cost model's error at one configuration: those that share settings err alike. A Gaussian process over the
// settings; its uncertainty shows where a trial would teach most.
class Correction {
 public:
  struct Estimate {
    double error = 0, deviation = 0;
  };

  explicit Correction(std::vector<KnownError> known);
  Estimate at(const SettingPoint& point) const;

 private:
  std::vector<KnownError> known_;
  std::optional<CholeskyFactor> factor_;  // none: nothing is known
  std::vector<double> weights_;
};

}  // namespace trireme::lab
