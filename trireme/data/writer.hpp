// Writes any Dataset in another format, into a folder that appears when it is complete. Used by `trireme data make`,
// whose source draws its samples, and by `convert`.
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
  int shards = 0;  // TFRecord files; 0: one per 1,250 samples, as for ImageNet
};

struct WriteOptions {
  std::string format;  // "tfrecord", "folder" or "idx"
  std::string folder;  // must not exist, or be empty
  std::string origin;  // the sources in words: an interrupted write resumes only with the same
  int quality = 90;    // of JPEG images made from pixels
  int threads = 1;
  std::stop_token stop = {};
  std::function<void(std::int64_t done, std::int64_t all)> on_progress = {};  // in samples, from any thread
};

// Writes into FOLDER.unfinished, renamed to FOLDER at the end. If an interrupted run with the same options left
// FOLDER.unfinished, complete parts are kept. Returns false if stopped. Error(bad_input) if the folder has other
// content. Error(failed) if a sample is broken (leaves nothing) or the disk is full (keeps complete parts).
bool write_dataset(const std::vector<SplitSource>& sources, const WriteOptions& options);

}  // namespace trireme::data
