// What `tune` asks where to look: how long a step takes with so many workers, threads and images, by what a step is
// made of (work that threads share, work that they do not, gradients over the memory or the network, exchanges that
// each cost a moment), and by how much that errs at one configuration, learnt from the trials of others.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace trireme::lab {

// Small systems of equations with a symmetric positive definite matrix, tens of unknowns: what the models are fitted
// with.
class CholeskyFactor {
 public:
  // The lower half is read. A matrix that is not positive definite is a mistake of the caller: std::invalid_argument.
  explicit CholeskyFactor(std::vector<std::vector<double>> matrix);

  std::vector<double> solve(std::vector<double> right) const;        // matrix x = right
  std::vector<double> solve_lower(std::vector<double> right) const;  // factor x = right

 private:
  std::vector<std::vector<double>> lower_;
};

// What decides a step's time in the model; of one worker where not said otherwise.
struct WorkLayout {
  double workers = 1, servers = 0;                   // in all
  double threads = 1;                                // that compute
  double batch = 1;                                  // images
  double bucket_bytes = 1;                           // gradients that travel together
  double images() const { return workers * batch; }  // of a step, all workers together
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

// Starts from what the network needs and what the machine gives, and is fitted to the trials as they come.
class StepCostModel {
 public:
  explicit StepCostModel(const CostFacts& facts);

  // By these trials alone, and by the facts where the trials do not say otherwise.
  void fit(std::span<const TimedLayout> trials);
  double step_seconds(const WorkLayout& layout) const;
  // "8.1 ms per image and core, 3 % of it not shared by threads; ..."
  std::string text() const;

 private:
  static constexpr std::size_t kTerms = 5;
  using Terms = std::array<double, kTerms>;
  Terms terms(const WorkLayout& layout) const;  // seconds by the facts

  CostFacts facts_;
  Terms factors_;  // what the trials make of them
};

// A configuration as a point: its value on each axis. Numbers are near each other by their ratio; texts are the same
// or not.
using SettingPoint = std::vector<std::variant<double, std::string>>;

struct KnownError {
  SettingPoint point;
  double error = 0;  // log(measured / modelled)
  double noise = 0;  // standard deviation of it
};

// By how much the cost model errs at one configuration: those that share settings err alike. A Gaussian process over
// the settings; it says how sure it is, and so where a trial would teach most.
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
