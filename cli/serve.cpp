#include "cli/serve.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "trireme/perf/threads.hpp"
#include "trireme/ps/server.hpp"

namespace trireme::cli {

void log_line(const std::string& text) { fmt::print(stderr, "trireme: {}\n", text); }

void serve(comm::ClusterWorld& world, const comm::ClusterPlace& place, int threads) {
  const auto workers = static_cast<int>(place.spec.workers.size());
  log_line(fmt::format("{} serves {} worker{} at {}, over {}", to_string(place.place), workers, workers == 1 ? "" : "s",
                       place.spec.address_of(place.place), world.data().transport()));
  ps::Server server(
      world.data(), workers,
      {.threads = perf::plan_threads(threads, 1, false).intra_threads, .start_thread = {}, .log = log_line});
  world.set_statistics([&server] { return server.statistics(); });
  world.set_shutdown([&server] { server.stop(); });
  const auto forget = [&world] {
    world.set_statistics({});
    world.set_shutdown({});
  };
  try {
    server.run();
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

}  // namespace trireme::cli
