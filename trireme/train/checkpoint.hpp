// The state of training as a safetensors file: values and optimizer state of all variables, progress in the metadata. A
// resumed run ends with the same weights as an uninterrupted one. Written and restored by trainers; read by `trireme
// eval` and `export`.
//
// Tensors: "<variable>", plain and row-major (weights: out, in, height, width), running statistics included;
// "<variable>/optimizer/0", "/1": the optimizer's state arrays; "<variable>/average": the variable's moving average, if
// kept. Metadata: see TrainingState.
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

#include "trireme/data/sample_order.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/accuracy.hpp"
#include "trireme/train/safetensors.hpp"

namespace trireme::train {

// Metadata keys are the member names, values decimal numbers.
struct TrainingState {
  std::string model = {};
  std::int64_t classes = 0;
  std::uint64_t seed = 1;
  std::int64_t step = 0;                           // updates done
  std::int64_t samples = 0;                        // position in the sequence of samples: the next one
  std::vector<data::PositionRange> leftover = {};  // earlier positions not used yet: "0-32,64-96"
  std::int64_t global_batch_size = 0;
  std::string optimizer = {};
  std::optional<double> train_seconds = {};  // of all steps so far; nothing: the checkpoint predates this field
  EpochSums epoch = {};                      // as epoch_steps, epoch_loss and epoch_seconds
  Metadata others = {};                      // from the trainer's observers
};

Metadata to_metadata(const TrainingState& state);
TrainingState read_state(MetadataReader& metadata);  // takes all that is left

// A copy in memory that training no longer changes.
struct Checkpoint {
  TrainingState state;
  std::vector<NamedTensor> tensors;
};

Checkpoint take_checkpoint(const VariableStore& store, TrainingState state);

void write_checkpoint(const Checkpoint& checkpoint, const std::string& path);

class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path);  // Error(bad_input) if not ours or damaged (checksum)

  const std::string& path() const { return path_; }
  const TrainingState& state() const { return state_; }
  const SafetensorsFile& tensors() const { return tensors_; }

  // To continue training: values, optimizer state and number of updates. The session's programs must be prepared.
  void restore(VariableStore& store) const;
  void restore_values(VariableStore& store, bool averages) const;  // averages if asked for and there

 private:
  HostTensor read(const std::string& name, const Node& variable) const;

  std::string path_;
  SafetensorsFile tensors_;
  TrainingState state_;
};

std::string average_name(const Node& variable);

std::string checkpoint_path(const std::string& folder, std::int64_t step);  // "<folder>/checkpoint-<step>.safetensors"
std::vector<std::string> list_checkpoints(const std::string& folder);       // by step
// The newest one; null if there is none. A damaged one is an error, never skipped.
std::unique_ptr<CheckpointFile> open_latest_checkpoint(const std::string& folder);
std::unique_ptr<CheckpointFile> open_checkpoint(const std::string& path);  // or a folder: its newest; else bad_input

// Writes checkpoints in the background, one at a time, and keeps the newest few. If the disk is too slow, a new
// checkpoint replaces the one that waits, so training never waits.
class CheckpointWriter {
 public:
  using Write = std::function<void(const Checkpoint&, const std::string& path)>;
  // Creates the folder and removes half-written files of a killed process. Error(bad_input) if it is not writable.
  CheckpointWriter(std::string folder, int keep, Write write = write_checkpoint);
  ~CheckpointWriter();  // waits until the saved checkpoints are written

  // Returns at once. Throws the first error not yet reported; this checkpoint is written anyway.
  void save(std::shared_ptr<const Checkpoint> checkpoint);
  void finish();                  // waits until everything is on disk; throws if writing failed
  std::string last_path() const;  // of the newest complete checkpoint; empty: none

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
  std::exception_ptr error_;  // first error not yet reported
  std::string last_path_;
  std::thread thread_;
};

}  // namespace trireme::train
