// The data set formats: detects and opens them. Used by `trireme bench`, `train`, `eval` and `data`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/data/dataset.hpp"

namespace trireme::data {

enum class Split : std::uint8_t { train, validation };

std::string_view to_string(Split split);

struct OpenOptions {
  std::string name = "auto";  // "tfrecord", "folder", "idx", "cifar10", or detected from the folder
  Split split = Split::train;
  // If set, called for a file broken from some point on, whose earlier samples are used; else that is an error.
  std::function<void(const std::string& problem)> on_broken_file = {};
};

// A file format. Programs may add their own: `--data-name NAME`, or any folder that is_there() recognizes.
struct Format {
  std::string name;
  std::string files;  // what it looks for, in words
  std::function<bool(const std::string& path, Split split)> is_there;
  std::function<std::shared_ptr<const Dataset>(const std::string& path, const OpenOptions& options)> open;
};
void add_format(Format format);  // first in main(): there is no lock. Error(bad_input) if the name is taken.

struct Contents {
  std::string format;
  std::vector<Split> splits;
};

// What open_dataset() would find. Error(bad_input) says what was looked for and what is there instead.
Contents look_into(const std::string& path, const std::string& name = "auto");

// Opens a folder or one TFRecord file. Error(bad_input) as in look_into(), or if the files are inconsistent;
// Error(unavailable) names the missing package if this build cannot read the format.
std::shared_ptr<const Dataset> open_dataset(const std::string& path, const OpenOptions& options);

// "are 12 files that are not JPEG images in folders of classes, ...: 10 .png (such as ...)" after "there"; empty: none.
std::string other_files_text(const DatasetInfo& info);

std::vector<std::pair<std::string, std::string>> library_versions();  // of decoding libraries

}  // namespace trireme::data
