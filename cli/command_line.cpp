#include "trireme/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/completion.hpp"
#include "cli/config_file.hpp"
#include "cli/help.hpp"
#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/train/facts.hpp"

namespace trireme {
namespace {

// Always one line. If a launcher started this process, the launcher reports it in its own way.
int report_error(std::string message, int code) {
  std::ranges::replace(message, '\n', ' ');
  std::fflush(stdout);
  if (!cluster::report_error(message, code)) log_line("error: " + message);
  return code;
}

// tf_cnn_benchmarks spelling with '_': --batch_size=32 becomes --batch-size=32.
std::vector<std::string> normalised(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.rfind("--", 0) != 0) continue;
    std::replace(argument.begin(),
                 argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '_',
                 '-');
  }
  return arguments;
}

class CommandLine {
 public:
  CommandLine();
  // Without the program name; throws CLI::ParseError. `is_launched`: a command that a launch would start.
  void parse(const std::vector<std::string>& arguments, bool is_launched);
  int run();
  CLI::App& app() { return app_; }
  const cli::Command* chosen() const;  // null: no command given

 private:
  CLI::App app_{"Trains convolutional networks and shows how fast they train, and why.", "trireme"};
  std::vector<cli::Command> commands_;
};

std::string version_text() {
  std::vector<std::string> libraries;
  const Json facts = train::build_facts();
  for (const auto& [name, version] : facts.at("libraries").items())
    libraries.push_back(fmt::format("{} {}", name, version.get<std::string>()));
  return fmt::format("trireme {}\n{}", perf::build_text(), fmt::join(libraries, ", "));
}

cli::LaunchNeeds check(const std::vector<std::string>& arguments, const comm::JobSize& size, bool all_options) {
  CommandLine line;
  try {
    line.parse(arguments, true);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) bad_input("help needs only one process: trireme {}", fmt::join(arguments, " "));
    bad_input("{}", cli::explain(line.app(), error));
  }
  const cli::Command* command = line.chosen();
  if (command == nullptr || cli::is_hidden(*command->app)) {
    bad_input("{}", cli::unknown_command(line.app(), arguments.front()));
  }
  if (all_options && command->check_options) command->check_options(size);
  if (command->launch_needs) return command->launch_needs(size);
  if (size.servers > 0) bad_input("--ps: `{}` does not use parameter servers", command->app->get_name());
  return {};
}

cli::LaunchNeeds check_command(const std::vector<std::string>& arguments, const comm::JobSize& size) {
  return check(arguments, size, false);
}

cli::LaunchNeeds check_options(const std::vector<std::string>& arguments, const comm::JobSize& size) {
  return check(arguments, size, true);
}

CommandLine::CommandLine() {
  using namespace cli;
  app_.formatter(std::make_shared<HelpFormatter>());  // first: commands inherit it
  app_.set_help_flag("-h,--help", "Print this help");
  app_.set_version_flag("-V,--version", version_text, "Print version, build and libraries");
  app_.require_subcommand(0, 1);
  commands_ = {add_bench(app_),
               add_train(app_),
               add_eval(app_),
               add_sweep(app_, check_options),
               add_tune(app_),
               add_compare(app_),
               add_report(app_),
               add_models(app_),
               add_data(app_),
               add_export(app_),
               add_net(app_),
               add_doctor(app_),
               add_launch(app_, check_command),
               add_help(app_)};
  for (Command& part : add_completion(app_)) commands_.push_back(std::move(part));
  for (Command& part : add_launch_parts(app_)) commands_.push_back(std::move(part));
}

void CommandLine::parse(const std::vector<std::string>& arguments, bool is_launched) {
  cli::check_words(app_, arguments);
  std::vector<std::string> usual = cli::with_config(normalised(arguments), app_, is_launched);
  std::ranges::reverse(usual);  // CLI11 takes them from the end
  app_.parse(usual);
  cli::check_values(app_);
}

const cli::Command* CommandLine::chosen() const {
  const auto found = std::ranges::find_if(commands_, [](const cli::Command& command) { return command.app->parsed(); });
  return found == commands_.end() ? nullptr : &*found;
}

int CommandLine::run() {
  const cli::Command* command = chosen();
  if (command == nullptr) {
    std::fputs(cli::help_text(app_).c_str(), stderr);
    return exit_code(ErrorKind::bad_input);
  }
  const int code = command->run();
  // A failed earlier flush leaves only the error flag.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fail(ErrorKind::failed, "cannot write to standard output");
  }
  return code;
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line;
  try {
    line.parse(arguments, !cluster::surrounding_launcher().empty());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return line.app().exit(error);  // --help, --version
    return report_error(cli::explain(line.app(), error), exit_code(ErrorKind::bad_input));
  }
  return line.run();
}

}  // namespace

int command_line(int argc, char** argv, std::vector<Network> networks) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // `ulimit -f`: a write fails like on a full disk instead of killing the process
  try {
    for (Network& network : networks) add_network(std::move(network));
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
    return report_error(error.what(), exit_code(error.kind()));
  } catch (const std::bad_alloc&) {
    return report_error("out of memory; try a smaller --batch-size", exit_code(ErrorKind::failed));
  } catch (const std::exception& error) {
    return report_error(fmt::format("internal error: {}", error.what()), exit_code(ErrorKind::failed));
  }
}

}  // namespace trireme
