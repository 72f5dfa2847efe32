// Writing data sets: any Dataset becomes one of another format, in a folder that appears when it is complete. Used by
// `trireme data make`, whose source draws its samples, and by `convert`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/formats.hpp"

namespace trireme::data {

struct SplitSource {
  Split split = Split::train;
  std::shared_ptr<const Dataset> samples;
  int shards = 0;  // TFRecord files; 0: one per 1,250 samples, as ImageNet has it
};

struct WriteOptions {
  std::string format;  // "tfrecord", "folder" or "idx"
  std::string folder;  // must not be there, or be empty
  std::string origin;  // what the sources are, in words: what was interrupted goes on only with the same
  int quality = 90;    // of JPEG images made from pixels
  int threads = 1;
  std::stop_token stop = {};
  std::function<void(std::int64_t done, std::int64_t all)> on_progress = {};  // in samples, on any thread
};

// Writes into FOLDER.unfinished, which becomes FOLDER at the end. Where FOLDER.unfinished is there from an interrupted
// run with the same options, what is complete in it is kept. Returns false if it was stopped. Error(bad_input) for a
// folder that has other things in it. Error(failed) where a sample is broken, with nothing left behind, and where the
// disk is full, with what is complete.
bool write_dataset(const std::vector<SplitSource>& sources, const WriteOptions& options);

}  // namespace trireme::data
