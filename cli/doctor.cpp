// `trireme doctor`: reports what this machine and build can do, and what is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/peak.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/plan/backend.hpp"
#include "trireme/train/facts.hpp"

namespace trireme::cli {
namespace {

// Optional libraries and their packages. Those without support are planned but have no code yet: installing their
// packages changes nothing, and the doctor says so.
struct OptionalLibrary {
  const char* name;
  const char* package;
  const char* purpose;
  bool supported;
};
constexpr std::array kOptionalLibraries{
    OptionalLibrary{"oneDNN", "libdnnl-dev", "fast kernels on the CPU", true},
    OptionalLibrary{"MPI", "openmpi-bin, libopenmpi-dev", "several processes and nodes", true},
    OptionalLibrary{"protobuf", "libprotobuf-dev, protobuf-compiler", "TFRecords, ONNX files and gRPC", true},
    OptionalLibrary{"gRPC", "libgrpc++-dev", "parameter servers over TCP", true},
    OptionalLibrary{"UCX", "libucx-dev", "RDMA networks", true},
    OptionalLibrary{"libjpeg-turbo", "libjpeg-dev", "real images", true},
    OptionalLibrary{"zlib", "zlib1g-dev", "compressed data sets, such as MNIST", true},
    OptionalLibrary{"SimGrid", "libsimgrid-dev", "simulated networks", false},
    OptionalLibrary{"CUDA", "cuda-toolkit (NVIDIA)", "GPUs", true},
    OptionalLibrary{"cuDNN", "libcudnn9-dev-cuda-13 (NVIDIA)", "GPUs", true},
    OptionalLibrary{"NCCL", "libnccl-dev (NVIDIA)", "several GPUs", true},
};

struct Diagnosis {
  perf::Machine machine;
  int gpus = 0;
  perf::ThreadPlan threads;
  perf::Peak peak_one, peak_all;
  std::optional<perf::Peak> peak_bf16;  // if faster than fp32
  perf::Bandwidth bandwidth;
};

// If the best pass exceeds the median this much, others used the machine: they do not slow all passes alike.
constexpr double kNoisyPasses = 1.2;

void warn_of_noise(const char* what, const perf::PassRates& rates, std::vector<std::string>& warnings) {
  if (rates.best < kNoisyPasses * rates.median) return;
  warnings.push_back(
      fmt::format("{} varied from {}/s to {}/s over {} passes: another program is using cores or memory; measure again "
                  "when the machine is idle",
                  what, format_bytes(rates.worst), format_bytes(rates.best), rates.passes));
}

// Measures the current load, not the one-minute average, before and after the benchmarks.
Diagnosis examine() {
  constexpr std::chrono::milliseconds kLookAtLoad{300};
  const double load_before = perf::current_load(kLookAtLoad);
  Diagnosis diagnosis;
  diagnosis.threads = perf::plan_threads(0, 0);
  perf::apply(diagnosis.threads);
  diagnosis.gpus = gpu_count();
  diagnosis.peak_one = perf::measure_fma_peak(1);
  diagnosis.peak_all = perf::measure_fma_peak(diagnosis.threads.intra_threads);
  if (make_backend(default_backend())->is_fast_in(Precision::bf16))
    diagnosis.peak_bf16 = perf::measure_fma_peak(diagnosis.threads.intra_threads, DataType::bf16);
  diagnosis.bandwidth = perf::measure_memory_bandwidth(diagnosis.threads.intra_threads);
  diagnosis.machine = perf::read_machine(std::max(load_before, perf::current_load(kLookAtLoad)));
  warn_of_noise("copying", diagnosis.bandwidth.copy, diagnosis.machine.warnings);
  warn_of_noise("reading", diagnosis.bandwidth.read, diagnosis.machine.warnings);
  return diagnosis;
}

// Empty if this build lacks it.
std::string version_of(const std::string& library) {
  for (const auto& versions : {library_versions(), comm::transport_versions(), data::library_versions()}) {
    for (const auto& [name, version] : versions) {
      if (name == library) return version;
    }
  }
  return "";
}

Json to_json(const perf::PassRates& rates) {
  return {{"count", rates.passes}, {"worst", rates.worst}, {"median", rates.median}, {"best", rates.best}};
}

Json to_json(const Diagnosis& diagnosis) {
  Json missing = Json::array();
  for (const OptionalLibrary& library : kOptionalLibraries) {
    if (!version_of(library.name).empty()) continue;
    missing.push_back({{"name", library.name},
                       {"package", library.package},
                       {"purpose", library.purpose},
                       {"supported", library.supported}});
  }
  return {{"machine", to_json(record::Machine(diagnosis.machine))},
          {"build", train::build_facts()},
          {"backends", backend_names()},
          {"gpus", diagnosis.gpus},
          {"missing_libraries", std::move(missing)},
          {"threads",
           {{"intra", diagnosis.threads.intra_threads},
            {"inter", diagnosis.threads.inter_threads},
            {"processors", diagnosis.threads.cores}}},
          {"fma_peak",
           {{"instruction_set", diagnosis.peak_all.instruction_set},
            {"flops_per_second_one_thread", diagnosis.peak_one.flops_per_second},
            {"flops_per_second", diagnosis.peak_all.flops_per_second},
            {"threads", diagnosis.peak_all.threads}}},
          {"bf16_peak", diagnosis.peak_bf16 ? Json{{"instruction_set", diagnosis.peak_bf16->instruction_set},
                                                   {"flops_per_second", diagnosis.peak_bf16->flops_per_second},
                                                   {"threads", diagnosis.peak_bf16->threads}}
                                            : Json(nullptr)},
          {"memory_bandwidth",
           {{"copy_bytes_per_second", diagnosis.bandwidth.copy.best},
            {"copy_passes", to_json(diagnosis.bandwidth.copy)},
            {"read_bytes_per_second", diagnosis.bandwidth.read.best},
            {"read_passes", to_json(diagnosis.bandwidth.read)},
            {"threads", diagnosis.bandwidth.threads}}}};
}

// Cache sizes are powers of two; in GB = 1e9 they would look odd.
std::string describe_caches(const std::vector<perf::Cache>& caches) {
  std::vector<std::string> parts;
  for (const perf::Cache& cache : caches) {
    const bool large = cache.bytes >= 1 << 20;
    parts.push_back(fmt::format("L{} {} x {:.4g} {}", cache.level, cache.count,
                                static_cast<double>(cache.bytes) / (large ? 1 << 20 : 1 << 10), large ? "MiB" : "KiB"));
  }
  return parts.empty() ? "unknown" : fmt::format("{}", fmt::join(parts, ", "));
}

using Rows = std::vector<std::array<std::string, 2>>;

void print_section(const char* title, const Rows& rows) {
  TextTable table({{""}, {""}, {""}});
  for (const auto& [name, value] : rows) table.add_row({"", name, value});
  fmt::print("{}\n{}\n", title, table.text());
}

std::string gpus_text(int gpus) {
  if (version_of("CUDA").empty()) return "not looked for: this build has no CUDA";
  if (gpus == 0) return "none found (no NVIDIA GPU or driver that this process can use)";
  return std::to_string(gpus);
}

std::string rates_text(const char* what, const perf::PassRates& rates) {
  return fmt::format("{} {}/s (median {}/s, worst {}/s of {} passes)", what, format_bytes(rates.best),
                     format_bytes(rates.median), format_bytes(rates.worst), rates.passes);
}

void print_machine(const perf::Machine& machine, int gpus) {
  print_section(
      "Machine",
      {{"host", machine.host},
       {"system", fmt::format("{}, {}", machine.os, machine.kernel)},
       {"processor", machine.cpu},
       {"cores", fmt::format("{} ({} hardware threads) in {} package(s), {} usable", machine.cores,
                             machine.hardware_threads, machine.packages, machine.usable_cores)},
       {"NUMA nodes", std::to_string(machine.numa_nodes)},
       {"caches", describe_caches(machine.caches)},
       {"memory",
        fmt::format("{}, {} available", format_bytes(machine.memory_bytes), format_bytes(machine.available_bytes))},
       {"instruction sets", fmt::format("{}", fmt::join(machine.instruction_sets, " "))},
       {"huge pages", machine.transparent_huge_pages},
       {"GPUs", gpus_text(gpus)},
       {"load now", fmt::format("{:.1f} threads of other programs running or waiting for a core", machine.load)}});
}

void print_speed(const Diagnosis& diagnosis) {
  const int threads = diagnosis.threads.intra_threads;
  print_section(
      "Measured",
      {{"threads", diagnosis.threads.describe()},
       {"fp32 FMA peak",
        fmt::format("{}/s on 1 thread, {}/s on {} ({})", format_flops(diagnosis.peak_one.flops_per_second),
                    format_flops(diagnosis.peak_all.flops_per_second), threads, diagnosis.peak_all.instruction_set)},
       {"bf16 peak", diagnosis.peak_bf16 ? fmt::format("{}/s on {} ({}): --precision bf16 is possible",
                                                       format_flops(diagnosis.peak_bf16->flops_per_second), threads,
                                                       diagnosis.peak_bf16->instruction_set)
                                         : "none: this CPU or build has no fast bf16, so --precision bf16 is refused"},
       {"memory bandwidth", fmt::format("{}, {} on {}", rates_text("copy", diagnosis.bandwidth.copy),
                                        rates_text("read", diagnosis.bandwidth.read), threads)}});
}

void print_build() {
  const perf::BuildInfo build = perf::build_info();
  std::vector<std::string> libraries;
  for (const auto& [name, version] : build.libraries) libraries.push_back(name + " " + version);
  print_section("Build", {{"trireme", fmt::format("{}, commit {}", build.version, build.git)},
                          {"compiler", fmt::format("{}, {}", build.compiler, build.build_type)},
                          {"backends", fmt::format("{}", fmt::join(backend_names(), ", "))},
                          {"libraries", fmt::format("{}", fmt::join(libraries, ", "))}});
}

void print_optional_libraries() {
  TextTable table({{""}, {"library"}, {"version"}, {"package"}, {"for"}});
  for (const OptionalLibrary& library : kOptionalLibraries) {
    const std::string version = version_of(library.name);
    const char* absent = library.supported ? "not in this build: install it and rebuild" : "not in this build";
    table.add_row({"", library.name, version.empty() ? absent : version, library.package, library.purpose});
  }
  std::vector<std::string> unsupported;
  for (const OptionalLibrary& library : kOptionalLibraries) {
    if (!library.supported) unsupported.emplace_back(library.name);
  }
  fmt::print("Optional libraries\n{}\n  Version {} does not use {} yet.\n\n", table.text(), perf::build_info().version,
             fmt::join(unsupported, ", "));
}

void print_warnings(const std::vector<std::string>& warnings) {
  if (warnings.empty()) fmt::print("No warnings.\n");
  for (const std::string& warning : warnings) fmt::print("Warning: {}\n", warning);
}

int run(bool json) {
  const Diagnosis diagnosis = examine();
  if (json) {
    fmt::print("{}\n", to_json(diagnosis).dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  print_machine(diagnosis.machine, diagnosis.gpus);
  print_speed(diagnosis);
  print_build();
  print_optional_libraries();
  print_warnings(diagnosis.machine.warnings);
  return 0;
}

}  // namespace

Command add_doctor(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("doctor", "Show what this machine and this build can do, and what is missing");
  auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Machine-readable");
  return {app, [json] { return run(*json); }};
}

}  // namespace trireme::cli
