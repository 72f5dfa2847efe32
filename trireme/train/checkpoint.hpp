// Where training stands, as a file: the values and the optimizer state of all variables in the safetensors format, and
// in its metadata how far it has come. A run that goes on from one ends with the same weights as one that was never
// interrupted. Taken and restored by trainers; read by `trireme eval` and `export`.
//
// Tensors: "<variable>", plain and row-major (weights: out, in, height, width), running statistics included;
// "<variable>/optimizer/0", "/1": the arrays of the optimizer's state; "<variable>/average": the moving average of the
// variable, where one is kept. Metadata: see TrainingState.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/accuracy.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::train {

// Under the names of the members, as decimal numbers.
struct TrainingState {
  std::string model = {};
  std::int64_t classes = 0;
  std::uint64_t seed = 1;
  std::int64_t step = 0;     // updates done
  std::int64_t samples = 0;  // place in the sequence of samples: what comes next
  std::int64_t global_batch_size = 0;
  std::string optimizer = {};
  std::optional<double> train_seconds = {};  // of all steps so far; nothing: the checkpoint is older than this field
  EpochSums epoch = {};                      // as epoch_steps, epoch_loss and epoch_seconds
  Metadata others = {};                      // of the trainer's observers
};

struct CheckpointTensor {
  std::string name;
  HostTensor value;
};

// In memory: a copy that training does not change any more.
struct Checkpoint {
  TrainingState state;
  std::vector<CheckpointTensor> tensors;
};

// The store's values and optimizer state now.
Checkpoint take_checkpoint(const VariableStore& store, TrainingState state);

void write_checkpoint(const Checkpoint& checkpoint, const std::string& path);

class CheckpointFile {
 public:
  // Error(bad_input) where it is not a checkpoint of ours, or is damaged: a checksum is kept.
  explicit CheckpointFile(const std::string& path);

  const std::string& path() const { return path_; }
  const TrainingState& state() const { return state_; }
  const SafetensorsFile& tensors() const { return tensors_; }

  // To go on training: values, optimizer state and the number of updates. The programs of the session are prepared.
  void restore(VariableStore& store) const;
  // To use the network: values alone, averaged ones where asked for and there.
  void restore_values(VariableStore& store, bool averages) const;

 private:
  HostTensor read(const std::string& name, const Node& variable) const;

  std::string path_;
  SafetensorsFile tensors_;
  TrainingState state_;
};

std::string average_name(const Node& variable);

// "<folder>/checkpoint-<step>.safetensors", by step.
std::string checkpoint_path(const std::string& folder, std::int64_t step);
std::vector<std::string> list_checkpoints(const std::string& folder);
// The newest one; nothing where there is none. A damaged one is an error, not passed over in silence.
std::unique_ptr<CheckpointFile> open_latest_checkpoint(const std::string& folder);
// A file, or the newest one in a folder. Error(bad_input) if there is none.
std::unique_ptr<CheckpointFile> open_checkpoint(const std::string& path);

// Writes checkpoints while training goes on, one after the other, and keeps the newest few. Where the disk is slower
// than they come, the newest takes the place of the one that waits: nobody waits for the disk.
class CheckpointWriter {
 public:
  using Write = std::function<void(const Checkpoint&, const std::string& path)>;
  // Makes the folder, and removes what a killed process has left half-written in it. Error(bad_input) where the folder
  // cannot be written.
  CheckpointWriter(std::string folder, int keep, Write write = write_checkpoint);
  ~CheckpointWriter();  // waits until what was saved is written

  // Returns at once. Throws the first thing that has gone wrong since it was last told; this one is written all the
  // same.
  void save(std::shared_ptr<const Checkpoint> checkpoint);
  // Until all is on the disk; throws where it is not.
  void finish();
  std::string last_path() const;  // of the newest complete one; empty: none

 private:
  void work();
  void remove_old() const;

  const std::string folder_;
  const int keep_;
  const Write write_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Checkpoint> waiting_;
  bool writing_ = false;
  bool stopping_ = false;
  std::exception_ptr error_;  // the first that nobody was told of
  std::string last_path_;
  std::thread thread_;
};

}  // namespace trireme::train
