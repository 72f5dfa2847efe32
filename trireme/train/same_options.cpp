#include "trireme/train/same_options.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::train {

void check_same_options(comm::Communicator& tasks, const Json& options) {
  tasks.set_context("comparing options");
  const std::vector<std::string> texts = comm::all_gather_text(tasks, options.dump());
  tasks.set_context("");
  const Json first = Json::parse(texts[0]);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const Json other = Json::parse(texts[rank]);
    Json all = first;
    for (const auto& [key, value] : other.items()) all.emplace(key, nullptr);  // what only the other was given
    for (const auto& [key, value] : all.items()) {
      const bool is_path = key == "tune_cache" || key == "network_file" || key == "data_dir";  // may differ between
                                                                                               // hosts
      if (is_path || other.value(key, Json()) == value) continue;
      bad_input("all workers need the same options: {} is {} on rank 0 ({}) and {} on rank {} ({})", key, value.dump(),
                tasks.members()[0].host, other.value(key, Json()).dump(), rank, tasks.members()[rank].host);
    }
  }
}

}  // namespace trireme::train
