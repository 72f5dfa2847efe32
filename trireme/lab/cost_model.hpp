// How long a step takes with so many workers, threads and images, by what a step is made of: work that threads share,
// work that they do not, gradients over the memory or the network, exchanges that each cost a moment. It starts from
// what the network needs and what the machine gives, and is fitted to the trials as they come. Made by `tune`, which
// asks it where to look.
#pragma once

#include <array>
#include <span>
#include <string>

namespace trireme::lab {

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

class CostModel {
 public:
  explicit CostModel(const CostFacts& facts);

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

}  // namespace trireme::lab
