#include "cli/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/checks.hpp"
#include "cli/help.hpp"
#include "trireme/lab/study/ready_plans.hpp"
#include "trireme/models/model.hpp"

namespace trireme::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBash = R"(_trireme() {
  local IFS=$'\n'
  COMPREPLY=($("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _trireme trireme
)";

constexpr const char* kZsh = R"(#compdef trireme
_trireme() {
  local -a found
  found=("${(@f)$($words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then compadd -- $found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _trireme "$@"; else compdef _trireme trireme; fi
)";

// The values that the option's type lists: "TEXT:{fp32,bf16}".
Words listed_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.rfind('}');
  return begin < end && end != std::string::npos ? split_list(type.substr(begin + 1, end - begin - 1)) : Words();
}

Words values_of(const CLI::Option& option) {
  Words values = listed_values(option);
  if (option.get_name() == "--model") {
    for (const Network& network : model_list()) values.push_back(network.name);
  } else if (option.get_name() == "plan") {
    for (const lab::ReadyPlan& plan : lab::ready_plans()) values.emplace_back(plan.name);
  }
  return values;
}

Words option_names(const CLI::App& command) {
  Words names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

Words command_names(const CLI::App& command) {
  Words names;
  for (const CLI::App* below : command.get_subcommands(nullptr)) {
    if (!is_hidden(*below)) names.push_back(below->get_name());
  }
  return names;
}

const CLI::Option* option_with_value(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = word.starts_with("-") ? command.get_option_no_throw(word) : nullptr;
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

const CLI::App* subcommand(const CLI::App& command, const std::string& name) {
  const auto found =
      command.get_subcommands([&](const CLI::App* each) { return each->get_name() == name && !is_hidden(*each); });
  return found.empty() ? nullptr : found.front();
}

// The command that the words before the last one have reached.
const CLI::App* command_of(const CLI::App& program, const Words& words) {
  const CLI::App* command = &program;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--" && command->get_name() == "launch") {
      command = &program;
    } else if (i > 0 && option_with_value(*command, words[i - 1]) != nullptr) {
      continue;  // a value that is spelled like a command
    } else if (const CLI::App* below = subcommand(*command, words[i])) {
      command = below;
    }
  }
  return command;
}

Words candidates(const CLI::App& program, const Words& words) {
  const CLI::App& command = *command_of(program, words);
  if (words.size() > 1) {
    if (const CLI::Option* option = option_with_value(command, words[words.size() - 2])) return values_of(*option);
  }
  if (words.back().starts_with("-")) return option_names(command);
  if (command.get_name() == "help") return command_names(program);
  Words names = command_names(command);
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const Words values = values_of(*option);
    names.insert(names.end(), values.begin(), values.end());
  }
  return names;
}

}  // namespace

std::vector<std::string> completions(const CLI::App& program, const std::vector<std::string>& words) {
  Words given = words.empty() ? Words{""} : words;
  // bash takes --option=value for three words, zsh for one.
  std::string kept;
  if (given.back() == "=") given.back() = "";
  std::erase(given, "=");
  if (const std::size_t equals = given.back().find('=');
      given.back().starts_with("--") && equals != std::string::npos) {
    kept = given.back().substr(0, equals + 1);
    const std::string value = given.back().substr(equals + 1);
    given.back().resize(equals);
    given.push_back(value);
  }
  Words found = candidates(program, given);
  std::erase_if(found, [&](const std::string& each) { return !each.starts_with(given.back()); });
  for (std::string& each : found) each = kept + each;
  return found;
}

std::vector<Command> add_completion(CLI::App& program) {
  CLI::App* script = program.add_subcommand(
      "completion", "Print completion for a shell. For bash, add to ~/.bashrc: source <(trireme completion bash)");
  const auto shell = std::make_shared<std::string>();
  script->add_option("shell", *shell, "bash or zsh")->required()->check(one_of({"bash", "zsh"}));
  CLI::App* complete = program.add_subcommand("complete", "Print what the last word can become")->group("");
  const auto words = std::make_shared<Words>();
  complete->add_option("words", *words, "Words after the program's name")->allow_extra_args();
  return {{script,
           [shell] {
             fmt::print("{}", *shell == "bash" ? kBash : kZsh);
             return 0;
           }},
          {complete, [&program, words] {
             for (const std::string& each : completions(program, *words)) fmt::print("{}\n", each);
             return 0;
           }}};
}

}  // namespace trireme::cli
