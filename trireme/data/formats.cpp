#include "trireme/data/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/readers.hpp"
#include "trireme/features.hpp"

#if TRIREME_WITH_PROTOBUF
#include <google/protobuf/stubs/common.h>
#endif
#if TRIREME_WITH_JPEG
#include <jpeglib.h>
#endif
#if TRIREME_WITH_ZLIB
#include <zlib.h>
#endif

namespace trireme::data {
namespace {

std::shared_ptr<const Dataset> open_records(const std::string& path, const OpenOptions& options) {
  if constexpr (TRIREME_WITH_PROTOBUF) return open_tfrecords(path, options);
  fail(ErrorKind::unavailable,
       "'{}' holds TFRecords, but this build has no protobuf: install libprotobuf-dev and protobuf-compiler and build "
       "again",
       path);
}

// Added formats come last. Pointers to them stay valid.
std::deque<Format>& formats() {
  static std::deque<Format> all{
      {"tfrecord", kTfRecordFiles,
       [](const std::string& path, Split split) { return !find_tfrecords(path, split).empty(); }, open_records},
      {"folder", kImageFolders, has_image_folder, open_image_folder},
      {"idx", kIdxFiles, has_idx, open_idx},
      {"cifar10", kCifarFiles, has_cifar10, open_cifar10},
  };
  return all;
}

std::vector<Split> splits_of(const Format& format, const std::string& path) {
  std::vector<Split> splits;
  for (const Split split : {Split::train, Split::validation}) {
    if (format.is_there(path, split)) splits.push_back(split);
  }
  return splits;
}

// A single file is a TFRecord file, for either split.
bool is_file(const std::string& path) { return std::filesystem::is_regular_file(path); }

std::vector<const Format*> candidates(const std::string& path, const std::string& name) {
  std::vector<const Format*> chosen;
  std::vector<std::string> names{"auto"};
  for (const Format& format : formats()) {
    names.emplace_back(format.name);
    const bool is_possible = !is_file(path) || format.name == "tfrecord";
    if (name == format.name || (name == "auto" && is_possible)) chosen.push_back(&format);
  }
  if (chosen.empty()) bad_input("unknown data format '{}'; allowed: {}", name, fmt::join(names, ", "));
  if (is_file(path) && chosen.front()->name != "tfrecord") {
    bad_input("'{}' is a file; the format {} is a folder with {}", path, chosen.front()->name, chosen.front()->files);
  }
  return chosen;
}

[[noreturn]] void nothing_found(const std::string& path, const std::vector<const Format*>& looked_for) {
  std::vector<std::string> wanted;
  for (const Format* format : looked_for) wanted.push_back(fmt::format("{} ({})", format->name, format->files));
  bad_input("'{}' holds no data set: looked for {}; it holds {}", path, fmt::join(wanted, ", "), contents_of(path));
}

const Format& find_format(const std::string& path, const std::string& name) {
  if (!std::filesystem::exists(path)) bad_input("there is no folder or file '{}'", path);
  const std::vector<const Format*> possible = candidates(path, name);
  const auto found = std::find_if(possible.begin(), possible.end(),
                                  [&](const Format* format) { return !splits_of(*format, path).empty(); });
  if (found == possible.end()) nothing_found(path, possible);
  return **found;
}

}  // namespace

void add_format(Format format) {
  const auto is_same = [&](const Format& other) { return other.name == format.name; };
  if (format.name.empty() || format.name == "auto" || format.name == "synthetic" || !format.is_there || !format.open) {
    bad_input("data format '{}': needs its own name, and functions that look for it and open it", format.name);
  }
  if (std::ranges::any_of(formats(), is_same)) bad_input("there is already a data format '{}'", format.name);
  formats().push_back(std::move(format));
}

std::string_view to_string(Split split) { return split == Split::train ? "train" : "validation"; }

Contents look_into(const std::string& path, const std::string& name) {
  const Format& format = find_format(path, name);
  if (is_file(path)) return {format.name, {Split::train}};
  return {format.name, splits_of(format, path)};
}

std::shared_ptr<const Dataset> open_dataset(const std::string& path, const OpenOptions& options) {
  const Format& format = find_format(path, options.name);
  if (!format.is_there(path, options.split)) {
    bad_input("'{}' ({}) has no {} data: looked for {}; it holds {}", path, format.name, to_string(options.split),
              format.files, contents_of(path));
  }
  return format.open(path, options);
}

std::string other_files_text(const DatasetInfo& info) {
  std::int64_t all = 0;
  std::vector<std::string> kinds;
  for (const auto& [ending, others] : info.other_files) {
    all += others.count;
    const std::string folders = others.count == 1 ? "folder" : "folders";
    const std::string what = ending == "/" ? folders : ending.empty() ? "without an ending" : ending;
    kinds.push_back(fmt::format("{} {} (such as {})", others.count, what, others.example));
  }
  if (all == 0) return "";
  const std::string what =
      all == 1 ? "is 1 file that is not a JPEG image in a class folder and is skipped"
               : fmt::format("are {} files that are not JPEG images in class folders and are skipped", all);
  return fmt::format("{}: {}", what, fmt::join(kinds, ", "));
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
#if TRIREME_WITH_PROTOBUF
  versions.emplace_back("protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
#endif
#if TRIREME_WITH_JPEG
  const int number = LIBJPEG_TURBO_VERSION_NUMBER;
  versions.emplace_back("libjpeg-turbo",
                        fmt::format("{}.{}.{}", number / 1'000'000, number / 1'000 % 1'000, number % 1'000));
#endif
#if TRIREME_WITH_ZLIB
  versions.emplace_back("zlib", zlibVersion());
#endif
  return versions;
}

}  // namespace trireme::data
