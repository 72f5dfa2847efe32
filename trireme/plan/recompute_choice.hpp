// Which results of forward to drop. The forward nodes that may run again are cut into segments; what a later segment
// needs to run again is kept, all else is dropped. Few segments keep little, but a segment that runs again holds all
// its results at once; so several ways to cut are tried, and each is judged by the memory of the whole run. Used by
// recompute().
#pragma once

#include <span>
#include <vector>

#include "trireme/plan/program.hpp"

namespace trireme {

// One node of a run; a copy is a forward node that runs again.
struct RunStep {
  NodeId node = -1;
  bool copy = false;
};

class RecomputeChoice {
 public:
  RecomputeChoice(const Graph& graph, std::span<const Tensor> fetches, Recompute recompute);

  // The run that needs the least memory, or hardly more with less work. Without copies if that is as good.
  std::vector<RunStep> best_run();

  // Whether the reader sees the tensor computed again: copies and backward nodes do, where it was dropped.
  bool reads_copy(const RunStep& reader, Tensor tensor) const;
  // What a copy of the node reads, in terms of the graph: its inputs, and for batch norm the statistics as well.
  static std::vector<Tensor> inputs_of(const Node& node, bool copy);

 private:
  struct Judged {
    std::int64_t peak_bytes = 0;
    double work = 0;  // of the copies
  };
  struct Trial {
    std::vector<int> ends = {};         // of segments: positions in candidates_, exclusive
    std::vector<bool> runs_again = {};  // by segment
    Judged judged = {};
  };

  void find_backward();
  void find_bytes();
  void find_candidates(std::span<const Tensor> fetches, Recompute recompute);
  // Ends of segments of at most this many bytes that let the least be kept.
  std::vector<int> cut(std::int64_t segment_bytes) const;
  // Sets dropped_ for segments of which some are not to run again.
  void drop(const std::vector<int>& ends, const std::vector<bool>& runs_again);
  std::vector<RunStep> run_steps() const;
  std::size_t number_of(Tensor tensor, bool copy) const;
  Judged judge() const;
  void judge(Trial& trial);
  std::vector<Trial> trials();

  const Graph& graph_;
  std::vector<bool> backward_;
  std::vector<NodeId> candidates_;         // nodes that may run again, in order
  std::vector<int> position_;              // by node: in candidates_, or -1
  std::vector<int> last_reader_;           // by position: of the last candidate that reads it, or itself
  std::vector<bool> read_backward_;        // by position
  std::vector<bool> dropped_;              // by node
  std::vector<std::size_t> first_number_;  // by node: number of its first output; then the number of all
  std::vector<std::int64_t> bytes_;        // by number of an original: of the arena
};

}  // namespace trireme
