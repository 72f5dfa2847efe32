#include "trireme/train/membership_log.hpp"

#include <cerrno>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/train/training_config.hpp"

namespace trireme::train {
namespace {

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

void take_line(const Json& line, Membership& membership) {
  if (line.contains("membership")) {
    membership.first_step = line.at("first_step");
    membership.nodes = line.at("nodes").get<std::vector<int>>();
    membership.threads = line.at("threads").get<std::vector<int>>();
    membership.options = line.at("options");
  } else if (line.contains("end")) {
    membership.steps = line.at("end");
    const auto hash = parse_number<std::uint64_t>(line.at("hash").get<std::string>(), 16);
    membership.hash = hash.value_or(0);
  } else {
    membership.changes.push_back(
        {.step = line.at("step"),
         .team = {.epoch = line.at("epoch"), .ranks = line.at("workers").get<std::vector<int>>()}});
  }
}

}  // namespace

MembershipLog::MembershipLog(std::string path, const MembershipHeader& header)
    : path_(std::move(path)), file_(path_, std::ios::trunc) {
  const bool is_written = write({{"membership", 1},
                                 {"first_step", header.first_step},
                                 {"nodes", header.nodes},
                                 {"threads", header.threads},
                                 {"options", header.options}});
  if (!is_written) fail(ErrorKind::failed, "--membership-log {}: {}", path_, std::strerror(errno));
}

void MembershipLog::note(std::uint64_t step, const comm::Team& made_by) {
  if (made_by.epoch == epoch_) return;
  epoch_ = made_by.epoch;
  write_if_possible({{"step", step}, {"epoch", epoch_}, {"workers", made_by.ranks}});
}

void MembershipLog::end(std::int64_t steps, std::uint64_t hash) {
  write_if_possible({{"end", steps}, {"hash", hex(hash)}});
}

bool MembershipLog::write(const Json& line) { return static_cast<bool>(file_ << line.dump() << std::endl); }

// Without a line, none of the later ones may follow: the log would tell another story.
void MembershipLog::write_if_possible(const Json& line) {
  if (is_lost_ || write(line)) return;
  is_lost_ = true;
  log_line(fmt::format("warning: --membership-log {}: {}; training continues, but cannot be replayed", path_,
                       std::strerror(errno)));
}

Membership read_membership(const std::string& path) {
  std::ifstream file(path);
  if (!file) bad_input("--replay {}: {}", path, std::strerror(errno));
  Membership membership;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    try {
      take_line(Json::parse(text), membership);
    } catch (const Json::exception&) {
      bad_input("--replay {}: line {} is not one of a membership log", path, number);
    }
  }
  if (membership.nodes.empty() || membership.nodes.size() != membership.threads.size()) {
    bad_input("--replay {}: this is not a membership log; train --elastic --membership-log writes one", path);
  }
  if (membership.steps == 0)
    bad_input("--replay {}: the run did not reach its end, so there is nothing to compare", path);
  if (membership.first_step > 0)
    bad_input("--replay {}: the run continued an earlier one; only whole runs can be replayed", path);
  return membership;
}

Json options_for_replay(const TrainingConfig& config) {
  Json options = to_json(config);
  for (const char* key : {"data_dir", "tune_cache", "network_file", "checkpoint_dir", "num_intra_threads", "bind"}) {
    options.erase(key);
  }
  return options;
}

}  // namespace trireme::train
