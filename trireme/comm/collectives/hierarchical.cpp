// All-reduce in three stages: the ranks of each node sum through shared memory; one rank per node joins a ring across
// nodes; the others copy its result. On a single node, values in the shared arena are reduced in place in the first
// stage: each byte is read and written once. Other values go through a staging area piece by piece.
#include <algorithm>
#include <cstring>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/collectives/algorithms.hpp"
#include "trireme/comm/collectives/node_team.hpp"

namespace trireme::comm {
namespace {

constexpr std::int64_t kControlBytes = (sizeof(NodeControl) + 4095) / 4096 * 4096;

bool has_several_nodes(const Communicator& communicator) { return layout_of(communicator).nodes > 1; }

// Long messages are best between nodes; within one, areas should fit the shared cache, but each round costs a barrier.
std::int64_t area_bytes(const Communicator& communicator, const AllReduceOptions& options) {
  return options.piece_bytes * (has_several_nodes(communicator) ? 32 : 16);
}

class Hierarchical : public AllReduceAlgorithm {
 public:
  Hierarchical(Communicator& communicator, const AllReduceOptions& options, const SharedMemory* arena,
               std::unique_ptr<SharedMemory> staging)
      : communicator_(communicator),
        arena_(arena),
        staging_(std::move(staging)),
        area_floats_(static_cast<std::size_t>(area_bytes(communicator, options)) / sizeof(float)),
        team_(communicator, *staging_),
        several_nodes_(has_several_nodes(communicator)),
        sources_(staging_->local_size()) {
    if (arena_ != nullptr && !std::equal(arena_->ranks().begin(), arena_->ranks().end(), staging_->ranks().begin(),
                                         staging_->ranks().end())) {
      bad_input("all-reduce: the arena is shared by different ranks than the communicator's");
    }
    // Blocks are assigned anew every time: without this, page faults would go on for many steps.
    staging_->fill_page_tables();
    if (arena_ != nullptr) arena_->fill_page_tables();
    if (!several_nodes_) return;
    leaders_ = communicator.split(team_.leads() ? 0 : -1, communicator.rank());
    if (leaders_ == nullptr) return;
    leaders_->share_interruption_with(communicator);
    ring_ = make_ring(*leaders_, options);
  }

  void reduce(std::span<float> values, Reduction reduction) override {
    if (communicator_.size() == 1 || values.empty()) return;
    if (arena_ != nullptr && arena_->contains(std::as_bytes(values))) {
      reduce_in_arena(values, reduction);
      return;
    }
    for (std::size_t at = 0; at < values.size(); at += area_floats_) {
      reduce_staged(values.subspan(at, std::min(area_floats_, values.size() - at)), reduction);
    }
  }

  void reduce_scatter(std::span<float> values, Reduction reduction) override {
    const bool in_arena = arena_ != nullptr && arena_->contains(std::as_bytes(values));
    if (several_nodes_ || !in_arena || values.empty()) return reduce(values, reduction);
    begin_in_arena(values, reduction);
    const std::span<float> own = slice_of(values, communicator_.size(), communicator_.rank());
    const auto begin = static_cast<std::size_t>(own.data() - values.data());
    team_.reduce_range(sources_, values.data(), begin, begin + own.size(), node_factor(reduction));
  }

  bool all_gather(std::span<float> values) override {
    if (several_nodes_) return false;
    const int size = communicator_.size();
    const std::size_t largest = slice_of(values, size, 0).size();
    for (std::size_t at = 0; at < largest; at += area_floats_) {
      area_ = 1 - area_;  // the other may still be read
      const auto piece = [&](int local_rank) {
        std::span<float> slice = slice_of(values, size, staging_->ranks()[local_rank]);
        slice = slice.subspan(std::min(at, slice.size()));
        return slice.first(std::min(area_floats_, slice.size()));
      };
      const std::span<float> own = piece(staging_->local_rank());
      std::copy(own.begin(), own.end(), staged(staging_->local_rank(), area_));
      team_.gather({.count = values.size()});
      for (int local_rank = 0; local_rank < size; ++local_rank) {
        const std::span<float> to = piece(local_rank);
        if (local_rank != staging_->local_rank()) std::copy_n(staged(local_rank, area_), to.size(), to.begin());
      }
      team_.finish_copy();
    }
    return true;
  }

 private:
  void begin_in_arena(std::span<float> values, Reduction reduction) {
    const std::int64_t offset = arena_->offset_of(values.data());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      sources_[i] = reinterpret_cast<float*>(arena_->data(static_cast<int>(i)) + offset);
    }
    team_.gather({.offset = offset, .count = values.size(), .reduction = reduction});
  }

  void reduce_in_arena(std::span<float> values, Reduction reduction) {
    begin_in_arena(values, reduction);
    // With other nodes, only the leader needs the node's sums.
    const std::span<float* const> all(sources_);
    team_.reduce(all, several_nodes_ ? all.first(1) : all, values.size(), node_factor(reduction));
    if (!several_nodes_) return;
    if (team_.leads()) {
      sum_across_nodes(values, reduction);
    } else {
      team_.wait_crossed();
      std::memcpy(values.data(), sources_[0], values.size_bytes());
    }
    team_.finish_copy();
  }

  void reduce_staged(std::span<float> piece, Reduction reduction) {
    // Two alternating areas: others read this one two rounds ago and have synchronized since.
    area_ = 1 - area_;
    for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i] = staged(static_cast<int>(i), area_);
    std::memcpy(staged(staging_->local_rank(), area_), piece.data(), piece.size_bytes());
    team_.gather({.count = piece.size(), .reduction = reduction});
    team_.reduce(sources_, std::span(sources_).first(1), piece.size(), node_factor(reduction));
    if (several_nodes_) {
      if (team_.leads()) {
        sum_across_nodes({sources_[0], piece.size()}, reduction);
      } else {
        team_.wait_crossed();
      }
    }
    std::memcpy(piece.data(), sources_[0], piece.size_bytes());
  }

  // A mean is divided while summing within the node, which saves a pass.
  float node_factor(Reduction reduction) const {
    return reduction == Reduction::mean ? 1.0f / static_cast<float>(communicator_.size()) : 1.0f;
  }

  void sum_across_nodes(std::span<float> sums, Reduction reduction) {
    leaders_->set_timeout(communicator_.timeout());
    leaders_->set_context(communicator_.context());
    ring_->reduce(sums, reduction == Reduction::max ? Reduction::max : Reduction::sum);
    team_.announce_crossed();
  }

  float* staged(int local_rank, int area) const {
    return reinterpret_cast<float*>(staging_->data(local_rank) + kControlBytes) +
           static_cast<std::size_t>(area) * area_floats_;
  }

  Communicator& communicator_;
  const SharedMemory* arena_;
  std::unique_ptr<SharedMemory> staging_;
  std::size_t area_floats_;  // of one of the two staging areas
  int area_ = 0;
  NodeTeam team_;
  std::unique_ptr<Communicator> leaders_;  // of the nodes; null on other ranks and on a single node
  std::unique_ptr<AllReduceAlgorithm> ring_;
  bool several_nodes_;
  std::vector<float*> sources_;  // by local rank
};

}  // namespace

std::unique_ptr<AllReduceAlgorithm> make_hierarchical(Communicator& communicator, const AllReduceOptions& options,
                                                      const SharedMemory* arena) {
  auto staging = communicator.share(kControlBytes + 2 * area_bytes(communicator, options));
  if (staging == nullptr) return nullptr;
  return std::make_unique<Hierarchical>(communicator, options, arena, std::move(staging));
}

}  // namespace trireme::comm
