// Chooses between kernels that do the same work by running them. Made by a backend from its options; the times go to
// the tune cache.
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
  off,   // nothing is timed: the kernel that is listed first
  fast,  // few runs of each, one where that is long enough to tell
  full,  // the best of several, and of more alternatives
};

std::string_view to_string(Autotune autotune);

struct TuningOptions {
  Autotune autotune = Autotune::off;
  bool exact = false;                     // leave out kernels that round more than the direct sum does (Winograd)
  std::string force = {};                 // take the alternative of this name wherever there is one; for tests
  std::string cpu = "this cpu";           // times are kept by it
  std::shared_ptr<TuneCache> cache = {};  // none: nothing is kept
  std::function<void()> on_first = {};    // called before the first kernel is timed
};

class Tuner {
 public:
  // library: name and version, part of what times depend on. The kernels run on the device.
  Tuner(TuningOptions options, const std::string& library, ComputeDevice& device = host_device());

  struct Alternative {
    std::string name;
    KernelChoice choice;
  };
  const TuningOptions& options() const { return options_; }
  ComputeDevice& device() const { return device_; }
  // The name of the alternative that fastest() would take, where that is known from times of before: for those who make
  // alternatives at some expense. None where nothing is timed or an alternative is forced.
  std::optional<std::string> known_fastest(const std::string& problem) const;
  // The fastest of one or more for this request. The problem is a text with all that its time depends on; see
  // TuneCache. One that fails when it is run is left out, unless all do.
  KernelChoice fastest(const std::string& problem, std::vector<Alternative> alternatives,
                       const KernelRequest& request) const;

 private:
  std::string key_of(const std::string& problem) const;
  // Throws what was thrown if it fails.
  double time_of(KernelChoice& choice, double to_beat) const;
  std::size_t fastest_of(const std::string& problem, std::vector<Alternative>& alternatives,
                         const KernelRequest& request) const;

  TuningOptions options_;
  std::string machine_;
  ComputeDevice& device_;
};

}  // namespace trireme
