#include "trireme/cluster/shipment.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/cluster/tar_archive.hpp"

namespace trireme::cluster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWrapper = R"sh(#!/bin/sh
# Starts the program with the libraries that came with it.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/bin/trireme" "$@"
)sh";

// Of this process; the binary itself and the kernel's own one have no path.
std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string path = info->dlpi_name;
        if (path.find('/') != std::string::npos) static_cast<std::vector<fs::path>*>(result)->emplace_back(path);
        return 0;
      },
      &paths);
  return paths;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file || content.empty()) fail(ErrorKind::unavailable, "--ship: {} cannot be read", path.string());
  return content;
}

// UCX opens its modules, by names that end as its own, in the folder `ucx` beside itself.
std::vector<fs::path> ucx_modules(const fs::path& ucs) {
  const std::string name = ucs.filename().string(), ending = name.substr(std::min(name.find(".so"), name.size()));
  std::vector<fs::path> modules;
  std::error_code none;  // a build without modules
  for (const auto& entry : fs::directory_iterator(ucs.parent_path() / "ucx", none)) {
    if (entry.path().filename().string().ends_with(ending)) modules.push_back(entry.path());
  }
  return modules;
}

// FNV-1a: names folders of one user, which nobody tries to make collide.
std::uint64_t hash(const std::string& bytes) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return value;
}

}  // namespace

// libibverbs and its like open drivers that belong to them, and so do CUDA's.
bool belongs_to_the_system(const std::string& library) {
  constexpr std::array kNames{"ld-linux",      "linux-vdso",   "libc.so",      "libm.so",    "libmvec.so", "libpthread",
                              "libdl.so",      "librt.so",     "libresolv.so", "libutil.so", "libanl.so",  "libnss_",
                              "libibverbs.so", "librdmacm.so", "libmlx",       "libcuda.so", "libnvidia-"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return library.starts_with(name); });
}

Shipment pack_this_program() {
  std::map<std::string, fs::path> libraries;  // by name: the order in which they were loaded may differ
  for (const fs::path& library : loaded_libraries()) {
    const std::string name = library.filename();
    if (belongs_to_the_system(name)) continue;
    libraries["lib/" + name] = library;
    if (!name.starts_with("libucs.so")) continue;
    for (const fs::path& module : ucx_modules(library)) libraries["lib/ucx/" + module.filename().string()] = module;
  }
  TarArchive archive;
  archive.add("bin/trireme", read_file("/proc/self/exe"), true);
  for (const auto& [name, path] : libraries) archive.add(name, read_file(path), false);
  archive.add("trireme", kWrapper, true);  // the last: where it is, all is there
  Shipment shipment{.name = "", .archive = archive.bytes(), .libraries = libraries.size()};
  shipment.name = fmt::format("{:016x}", hash(shipment.archive));
  return shipment;
}

}  // namespace trireme::cluster
