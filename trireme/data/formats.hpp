// The formats of data sets: which one a folder has, and opening it. Used by `trireme bench`, `train`, `eval` and
// `data`.
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
  std::string name = "auto";  // format: "tfrecord", "folder", "idx", "cifar10", or what the folder looks like
  Split split = Split::train;
  // A file that is broken beyond some place is an error, unless this is given: it is told, and the samples before are
  // part of the data.
  std::function<void(const std::string& problem)> on_broken_file = {};
};

// A format of files. A program may bring one of its own: `--data-name NAME`, or any folder that is_there() knows.
struct Format {
  std::string name;
  std::string files;  // what it looks for, in words
  std::function<bool(const std::string& path, Split split)> is_there;
  std::function<std::shared_ptr<const Dataset>(const std::string& path, const OpenOptions& options)> open;
};
// Call it first in main(): the table has no lock. Error(bad_input) if the name is taken.
void add_format(Format format);

struct Contents {
  std::string format;
  std::vector<Split> splits;
};

// What open_dataset() would find under a path. Error(bad_input) that says what was looked for and what is there, where
// it is none of the formats, or not the one that is named.
Contents look_into(const std::string& path, const std::string& name = "auto");

// Of a folder, or of one TFRecord file. Error(bad_input) as look_into(), or where the files do not fit together;
// Error(unavailable) that names the missing package where this build cannot read the format.
std::shared_ptr<const Dataset> open_dataset(const std::string& path, const OpenOptions& options);

// "are 12 files that are not JPEG images in folders of classes, which are left out: 10 .png (such as ...), 2 .txt
// (...)", to go on from "there"; empty: there are none.
std::string other_files_text(const DatasetInfo& info);

// Name and version of what this build decodes files with.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace trireme::data
