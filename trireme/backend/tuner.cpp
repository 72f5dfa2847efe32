#include "trireme/backend/tuner.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"

namespace trireme {
namespace {

// One piece of memory for all alternatives in turn, so that pages are touched only once.
class Workspace {
 public:
  Workspace(const std::vector<Tuner::Alternative>& alternatives, const KernelRequest& request, ComputeDevice& device)
      : request_(request) {
    std::int64_t bytes = 0;
    for (const Tuner::Alternative& alternative : alternatives)
      bytes = std::max(bytes, place(alternative.choice).second);
    memory_ = device.allocate(bytes, "timing kernels");
    device.is_host() ? fill_host(bytes) : fill(device, bytes);
  }

  void bind(KernelChoice& choice) const { choice.kernel->bind(place(choice).first); }

 private:
  // Touches every page before the clock runs, and avoids denormals, which are slow. As bf16: 0.5 and 0 in turn.
  void fill_host(std::int64_t bytes) const {
    auto* const values = static_cast<float*>(memory_.at(0));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < bytes / 4; ++i) values[i] = 0.5f;
  }
  // Random bits: on simple numbers a GPU stays cooler and is faster than in real work.
  void fill(ComputeDevice& device, std::int64_t bytes) const {
    constexpr std::int64_t kPiece = 16 << 20;
    const DeviceMemory piece = device.allocate_staging(std::min(bytes, kPiece));
    auto* const halves = static_cast<std::uint16_t*>(piece.at(0));
    for (std::int64_t i = 0; i < piece.bytes() / 2; i += 4) {
      const RandomBlock random = philox(1, 2, static_cast<std::uint64_t>(i));
      // Magnitudes: between 2^-7 and 2 as bf16 or f32, between 1 and 2 as fp16.
      for (std::int64_t j = 0; j < 4; ++j) halves[i + j] = static_cast<std::uint16_t>((random[j] & 0x83ffU) | 0x3c00U);
    }
    for (std::int64_t at = 0; at < bytes; at += kPiece)
      device.upload(memory_.at(at), piece.at(0), std::min(kPiece, bytes - at));
    device.synchronize();
  }
  static std::int64_t bytes_of(const Shape& shape, const Format& format) {
    return TensorDesc{format.dtype, shape, format.layout}.bytes();
  }
  // The addresses of a kernel's memory, and its size in bytes.
  std::pair<KernelMemory, std::int64_t> place(const KernelChoice& choice) const {
    std::int64_t end = 0;
    const auto take = [&](std::int64_t bytes) {
      constexpr std::int64_t kLine = 64;
      const std::int64_t begin = std::exchange(end, end + (bytes + kLine - 1) / kLine * kLine);
      return memory_.bytes() > 0 ? memory_.at(begin) : nullptr;
    };
    KernelMemory memory;
    for (std::size_t i = 0; i < choice.inputs.size(); ++i) {
      memory.inputs.push_back(take(bytes_of(request_.inputs[i].shape, choice.inputs[i])));
    }
    for (std::size_t i = 0; i < choice.outputs.size(); ++i) {
      memory.outputs.push_back(take(bytes_of(request_.node.outputs[i].shape, choice.outputs[i])));
    }
    memory.scratch = take(choice.scratch_bytes);
    return {std::move(memory), end};
  }

  const KernelRequest& request_;
  DeviceMemory memory_;
};

// For kernels that run asynchronously: the best of several runs, after one that may load or compile the kernel.
double measure_on(ComputeDevice& device, Kernel& kernel) {
  constexpr int kRuns = 5;
  kernel.run({});
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < kRuns; ++run) {
    device.record_time(0);
    kernel.run({});
    device.record_time(1);
    best = std::min(best, device.seconds_between(0, 1));
  }
  device.synchronize();
  return best;
}

// to_beat: the fastest time so far.
double measure(Kernel& kernel, bool thorough, double to_beat) {
  constexpr int kMostRuns = 8;
  constexpr double kEnough = 0.01;   // seconds; short kernels are noisy and cheap to repeat
  constexpr double kHopeless = 1.3;  // times to_beat: no further run can make up for that
  double best = std::numeric_limits<double>::max(), spent = 0;
  for (int run = 0; run < kMostRuns; ++run) {
    const auto start = SteadyClock::now();
    kernel.run({});
    const double seconds = seconds_since(start);
    best = std::min(best, seconds);
    spent += seconds;
    if (thorough) continue;
    // The first run also warms the caches, which shows in short kernels.
    if (spent > kEnough || (run > 0 && best > kHopeless * to_beat)) break;
  }
  return best;
}

}  // namespace

std::string_view to_string(Autotune autotune) {
  constexpr std::array kNames{"off", "fast", "full"};
  return kNames.at(static_cast<std::size_t>(autotune));
}

Tuner::Tuner(TuningOptions options, const std::string& library, ComputeDevice& device)
    : options_(std::move(options)),
      machine_(device.is_host() ? fmt::format("{} | {}", options_.cpu, library) : library),
      device_(device) {
  if (!options_.cache) options_.cache = std::make_shared<TuneCache>();
}

KernelChoice Tuner::fastest(const std::string& problem, std::vector<Alternative> alternatives,
                            const KernelRequest& request) const {
  const auto forced = std::find_if(alternatives.begin(), alternatives.end(),
                                   [&](const Alternative& a) { return a.name == options_.force; });
  if (forced != alternatives.end()) return std::move(forced->choice);
  if (options_.autotune == Autotune::off || alternatives.size() == 1) return std::move(alternatives.front().choice);
  return std::move(alternatives[fastest_of(key_of(problem), alternatives, request)].choice);
}

std::optional<std::string> Tuner::known_fastest(const std::string& problem) const {
  if (options_.autotune == Autotune::off || !options_.force.empty()) return std::nullopt;
  return options_.cache->fastest(key_of(problem));
}

std::string Tuner::key_of(const std::string& problem) const {
  const std::string threads = device_.is_host() ? fmt::format(" | {} threads", omp_get_max_threads()) : "";
  return fmt::format("{}{} | {}{}", machine_, threads, problem, options_.autotune == Autotune::full ? " | full" : "");
}

double Tuner::time_of(KernelChoice& choice, double to_beat) const {
  return device_.is_host() ? measure(*choice.kernel, options_.autotune == Autotune::full, to_beat)
                           : measure_on(device_, *choice.kernel);
}

std::size_t Tuner::fastest_of(const std::string& problem, std::vector<Alternative>& alternatives,
                              const KernelRequest& request) const {
  TuneCache& cache = *options_.cache;
  std::optional<Workspace> workspace;
  double best = std::numeric_limits<double>::max();
  std::optional<std::size_t> fastest;
  std::optional<Error> failure;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    Alternative& alternative = alternatives[i];
    auto seconds = cache.find(problem, alternative.name);
    if (!seconds) {
      if (options_.on_first && cache.added() == 0) options_.on_first();
      const auto start = SteadyClock::now();
      if (!workspace) workspace.emplace(alternatives, request, device_);
      workspace->bind(alternative.choice);
      try {
        seconds = time_of(alternative.choice, best);
      } catch (const Error& error) {
        failure = error;
        continue;
      }
      cache.add(problem, alternative.name, *seconds, seconds_since(start));
    }
    if (*seconds < best) {
      best = *seconds;
      fastest = i;
    }
  }
  if (!fastest) throw *failure;
  return *fastest;
}

}  // namespace trireme
