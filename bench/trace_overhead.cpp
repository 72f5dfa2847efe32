// What --trace costs: steps with and without it in turns, in one run, so that both see the same machine.
//   [mpirun -np 2] build/release/bench/bench_trace_overhead [MODEL [BATCH [PAIRS]]]
// The median over pairs of neighbouring steps of traced by not traced, in wall time and in processor time of the whole
// process, with its standard error. Processor time does not count what other programs take away.
#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "trireme/comm/world.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/step_trace.hpp"
#include "trireme/train/worker.hpp"

namespace {

using namespace trireme;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double wall_seconds() { return 1e-9 * static_cast<double>(steady_nanoseconds()); }

struct StepTime {
  double wall = 0, processor = 0;
};

void print(const char* what, const std::vector<double>& ratios, double step_seconds) {
  // Of a median of values that are spread like a normal distribution.
  const double error = 1.2533 * perf::jitter(ratios) / std::sqrt(static_cast<double>(ratios.size()));
  fmt::print("{:<15} {:+.2f} % +/- {:.2f} % ({} pairs of steps of {:.2f} ms)\n", what, 100 * (perf::median(ratios) - 1),
             100 * error, ratios.size(), 1e3 * step_seconds);
}

void run(comm::Communicator& communicator, train::StepConfig config, int pairs) {
  constexpr int kWarmUp = 10;
  perf::Recorder recorder(1 << 20);
  train::Worker worker(config, {communicator}, {.recorder = &recorder});
  const train::StepTrace trace(&recorder);
  const auto step = [&](bool traced) {
    trace.set_recording(traced);
    const StepTime begin{wall_seconds(), processor_seconds()};
    {
      const perf::ScopedSpan span = trace.step(1);
      worker.run_step(0.001);
    }
    return StepTime{wall_seconds() - begin.wall, processor_seconds() - begin.processor};
  };
  for (int i = 0; i < kWarmUp; ++i) step(false);
  std::vector<double> wall, processor, seconds;
  for (int pair = 0; pair < pairs; ++pair) {
    const bool first = pair % 2 == 0;  // who is first changes
    const StepTime a = step(first), b = step(!first);
    const StepTime &on = first ? a : b, &off = first ? b : a;
    wall.push_back(on.wall / off.wall);
    processor.push_back(on.processor / off.processor);
    seconds.push_back(off.wall);
  }
  if (communicator.rank() > 0) return;
  std::size_t spans = 0;
  for (const perf::Track& track : recorder.tracks()) spans += track.spans().size();
  fmt::print("{} of {} images, {} worker{}, {} spans per traced step\n", config.options.model, config.batch_size,
             communicator.size(), communicator.size() == 1 ? "" : "s", spans / wall.size());
  print("wall time", wall, perf::median(seconds));
  print("processor time", processor, perf::median(seconds));
}

int measure(const std::vector<std::string>& arguments) {
  const auto world = comm::join_world();
  train::StepOptions options;
  options.model = arguments.empty() ? "resnet20" : arguments[0];
  options.batch_size = arguments.size() > 1 ? std::stoi(arguments[1]) : 4;
  options.num_intra_threads = 1;  // threads that wait for each other take processor time
  run(world->communicator(), train::resolve(options, {.workers = world->communicator().size()}),
      arguments.size() > 2 ? std::stoi(arguments[2]) : 500);
  world->leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measure({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
