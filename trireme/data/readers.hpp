// One entry per format: whether a folder holds it, and opening it. Made use of by open_dataset() (formats.cpp) alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/formats.hpp"

namespace trireme::data {

using ProblemHandler = std::function<void(const std::string& problem)>;

// The file names that a reader looks for, as messages show them.
inline constexpr const char* kIdxFiles = "train-images-idx3-ubyte, t10k-images-idx3-ubyte (or .gz)";
inline constexpr const char* kCifarFiles = "data_batch_1.bin to data_batch_5.bin, test_batch.bin";
inline constexpr const char* kImageFolders = "train/<class>/*.jpg, val/<class>/*.jpg";
inline constexpr const char* kTfRecordFiles =
    "train-*-of-*, validation-*-of-*, train.tfrecord, validation.tfrecord (or .gz)";

bool has_idx(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_idx(const std::string& folder, Split split);

bool has_cifar10(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_cifar10(const std::string& folder, Split split);

bool has_image_folder(const std::string& folder, Split split);
std::shared_ptr<const Dataset> open_image_folder(const std::string& folder, Split split);

// The files of a split, in order; `path` may be one file, which is then of either split. Empty: there are none.
// Error(bad_input) that names those that are missing of a set such as train-00000-of-00008.
std::vector<std::string> find_tfrecords(const std::string& path, Split split);
// In builds with protobuf. Without a handler a file whose framing is broken is an error; with one, its records up to
// there are part of the data.
std::shared_ptr<const Dataset> open_tfrecords(const std::string& path, Split split, const ProblemHandler& on_problem);

}  // namespace trireme::data
