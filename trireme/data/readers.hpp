// One entry per format: whether a folder holds it, and opening it. Used by open_dataset() (formats.cpp) alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/formats.hpp"

namespace trireme::data {

// The file names that a reader looks for, as messages show them.
inline constexpr const char* kIdxFiles = "train-images-idx3-ubyte, t10k-images-idx3-ubyte (or .gz)";
inline constexpr const char* kCifarFiles = "data_batch_1.bin to data_batch_5.bin, test_batch.bin";
inline constexpr const char* kImageFolders = "train/<class>/*.jpg, val/<class>/*.jpg";
inline constexpr const char* kTfRecordFiles =
    "train-*-of-*, validation-*-of-*, train.tfrecord, validation.tfrecord (or .gz)";

bool has_idx(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_idx(const std::string& folder, const OpenOptions& options);

bool has_cifar10(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_cifar10(const std::string& folder, const OpenOptions& options);

bool has_image_folder(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_image_folder(const std::string& folder, const OpenOptions& options);

// The files of a split, in order; `path` may be one file, which is then of either split. Empty: there are none.
// Error(bad_input) that names those that are missing of a set such as train-00000-of-00008.
std::vector<std::string> find_tfrecords(const std::string& path, Split split);
std::shared_ptr<const Dataset> open_tfrecords(const std::string& path, const OpenOptions& options);  // with protobuf

}  // namespace trireme::data
