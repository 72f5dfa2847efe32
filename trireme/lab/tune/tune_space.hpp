// The search space of `tune`: sensible processes, threads, images, servers and exchanges for a network on this machine,
// as cells of a plan, and the default among them. Made by `trireme tune`, searched by search_fastest().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/tune/tune_model.hpp"

namespace trireme::lab {

struct TuneObjective {
  enum class Goal : std::uint8_t { images_per_second, images_per_second_at_batch, epoch_time };
  Goal goal = Goal::images_per_second;
  std::int64_t effective_batch = 0;  // over all workers, if the batch is fixed
  std::int64_t samples = 0;          // per epoch

  // Images per second, larger is better; for an epoch only useful images, as its last step may not be full.
  double score(const WorkLayout& layout, double step_seconds) const;
  std::string text(double score) const;  // "812.4 images/sec", "61.5 s per epoch"
};

// What this machine and build can do besides one process.
struct TuneAbilities {
  bool starts_workers = false, starts_servers = false;
};

struct TuneRequest {
  std::string model = "resnet50";
  TuneObjective objective = {};
  std::optional<int> workers_up_to = {};   // nothing: the number of cores
  std::vector<std::int64_t> batches = {};  // empty: powers of two up to the network's own batch
  std::vector<std::string> set = {};       // option=value, as for a sweep
};

struct TuneCandidate {
  WorkLayout layout;
  SettingPoint point;
};

struct TuneSpace {
  StudyPlan plan;
  std::vector<StudyCell> cells;
  std::vector<TuneCandidate> candidates;  // in the order of the cells
  std::size_t default_cell = 0;
  double flops_per_image = 0, gradient_bytes = 0;
};

// Error(bad_input) if the request is impossible.
TuneSpace make_tune_space(const TuneRequest& request, const OptionCatalog& options, const StudyMachine& machine,
                          const TuneAbilities& abilities);

}  // namespace trireme::lab
