// One entry per format: detects and opens it. Only for open_dataset() (formats.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/formats.hpp"

namespace trireme::data {

// File names that readers look for, for messages.
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

// The files of a split, in order; `path` may be one file, which serves either split. Empty: none. Error(bad_input)
// names missing files of a set such as train-00000-of-00008.
std::vector<std::string> find_tfrecords(const std::string& path, Split split);
std::shared_ptr<const Dataset> open_tfrecords(const std::string& path, const OpenOptions& options);  // with protobuf

}  // namespace trireme::data
