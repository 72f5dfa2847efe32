// What `tune` searches: the configurations of processes, threads, images, servers and exchanges that make sense for a
// network on this machine, as the cells of a plan, and which of them is what one gets without any option. Made by
// `trireme tune`, searched by TuneSearch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/lab/study_cells.hpp"
#include "trireme/lab/tune_model.hpp"

namespace trireme::lab {

struct TuneObjective {
  enum class Goal : std::uint8_t { images_per_second, images_per_second_at_batch, epoch_time };
  Goal goal = Goal::images_per_second;
  std::int64_t effective_batch = 0;  // of all workers together, at a given batch
  std::int64_t samples = 0;          // of an epoch

  // Images per second, larger is better; of an epoch those that are useful: its last step may not be full.
  double score(const WorkLayout& layout, double step_seconds) const;
  std::string text(double score) const;  // "812.4 images/sec", "61.5 s per epoch"
};

// What this machine and this build can do beside one process.
struct TuneAbilities {
  bool starts_workers = false, starts_servers = false;
};

struct TuneRequest {
  std::string model = "resnet50";
  TuneObjective objective = {};
  std::optional<int> workers_up_to = {};   // nothing: the cores
  std::vector<std::int64_t> batches = {};  // none: powers of two up to the network's own batch
  std::vector<std::string> set = {};       // option=value, as of a sweep
};

struct TuneCandidate {
  WorkLayout layout;
  SettingPoint point;
};

struct TuneSpace {
  StudyPlan plan;
  std::vector<StudyCell> cells;
  std::vector<TuneCandidate> candidates;  // of the cells, in their order
  std::size_t default_cell = 0;
  double flops_per_image = 0, gradient_bytes = 0;
};

// Error(bad_input) where the request asks for what cannot be.
TuneSpace make_tune_space(const TuneRequest& request, const OptionCatalog& options, const StudyMachine& machine,
                          const TuneAbilities& abilities);

}  // namespace trireme::lab
