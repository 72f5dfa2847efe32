// Chooses between kernels that do the same work by timing them. Made by a backend; keeps times in the tune cache.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/backend/tune_cache.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme {

enum class Autotune : std::uint8_t {
  off,   // no timing: the kernel listed first
  fast,  // few runs of each kernel, one if it is long enough
  full,  // the best of several runs, and more alternatives
};

std::string_view to_string(Autotune autotune);

struct TuningOptions {
  Autotune autotune = Autotune::off;
  bool exact = false;                     // leave out kernels that round more than the direct sum (Winograd)
  std::string force = {};                 // for tests: take the alternative of this name if there is one
  std::string cpu = "this cpu";           // part of the cache's key for kernels on the host
  std::shared_ptr<TuneCache> cache = {};  // null: times are kept in memory
  std::function<void()> on_first = {};    // called before the first kernel is timed
};

class Tuner {
 public:
  // library: name and version, part of the cache's key. The kernels run on the device.
  Tuner(TuningOptions options, const std::string& library, ComputeDevice& device = host_device());

  struct Alternative {
    std::string name;
    KernelChoice choice;
  };
  const TuningOptions& options() const { return options_; }
  ComputeDevice& device() const { return device_; }
  // What fastest() would take, if earlier times tell: avoids making all alternatives. None if tuning is off or forced.
  std::optional<std::string> known_fastest(const std::string& problem) const;
  // The fastest of one or more alternatives. problem: see TuneCache. Skips those that fail; throws if all do.
  KernelChoice fastest(const std::string& problem, std::vector<Alternative> alternatives,
                       const KernelRequest& request) const;

 private:
  std::string key_of(const std::string& problem) const;
  double time_of(KernelChoice& choice, double to_beat) const;
  std::size_t fastest_of(const std::string& problem, std::vector<Alternative>& alternatives,
                         const KernelRequest& request) const;

  TuningOptions options_;
  std::string machine_;
  ComputeDevice& device_;
};

}  // namespace trireme
