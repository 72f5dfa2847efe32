#include "cli/bench_options.hpp"

#include <fmt/format.h>

#include <array>

#include "cli/table_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {
namespace {

// tf_cnn_benchmarks options that this build cannot honor: declared so that the error says why.
void add_refused(CLI::App& app, BenchArguments& arguments) {
  struct Refused {
    const char *name, *reason;
  };
  constexpr std::array kRefused{
      Refused{"--server-protocol", "use --protocol"},
      Refused{"--use-fp16", "use --precision fp16"},
  };
  for (const auto& [name, reason] : kRefused) {
    app.add_option_function<std::string>(name,
                                         [&arguments, name = name, reason = reason](const std::string&) {
                                           arguments.refused = fmt::format("{}: {}", name, reason);
                                         })
        ->expected(0, 1)
        ->group("");  // hidden from help
  }
}

}  // namespace

void add_evaluation_options(CLI::App& app, train::StepOptions& options) {
  const auto add = [&](const char* name) { return add_option(app, config::step_table(), name, options); };
  add("data-dir")->required()->description("Data set with the validation images");
  for (const char* name : {"data-name", "data-threads", "prefetch", "max-bad-records"}) add(name);
  add("mean")->description("Subtracted from each pixel value, 0 to 255 (default: as in the checkpoint)");
  add("std")->description("The values are then divided by this (default: as in the checkpoint)");
  add("crop")->description("none or centre (default: as in the checkpoint)");
  for (const char* name : {"device", "backend", "num-intra-threads", "bind", "autotune", "exact", "tune-cache"}) {
    add(name);
  }
}

void add_bench_options(CLI::App& app, BenchArguments& arguments) {
  add_table<train::StepOptions>(app, config::step_table(), arguments.options, {"eval-crop", "trace-steps"});
  add_table<lab::TimingOptions>(app, config::timing_table(), arguments.options);
  add_table(app, config::cluster_table(), arguments.cluster);
  add_table(app, config::output_table(), arguments.files, {"tensorboard", "csv", "membership-log"});
  add_option(app, config::step_table(), "trace-steps", static_cast<train::StepOptions&>(arguments.options));
  add_refused(app, arguments);
}

LaunchNeeds training_needs(const ClusterOptions& options, const train::DistributionConfig& distribution,
                           const std::string& record) {
  LaunchNeeds needs{.protocol = protocol_in_launch(options), .needs_first_worker = true, .record_file = record};
  if (distribution.is_elastic()) {
    if (needs.talks_mpi())
      bad_input("--elastic: MPI does not go on without a rank; use --protocol grpc, not {}", needs.protocol);
    if (needs.protocol == "grpc+ucx")
      bad_input("--elastic: tensors over UCX cannot follow a lost worker yet; use --protocol grpc");
    needs.protocol = "grpc";
    needs.least_workers = distribution.least_workers;
  }
  needs.survives_lost_workers = distribution.survives_lost_workers() && !needs.talks_mpi();
  return needs;
}

}  // namespace trireme::cli
