#include "trireme/ps/protocol.hpp"

#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme::ps {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostText = 64U << 20U;

json to_json(const op::OptimizerRule& rule) {
  json to = json::array({op::to_string(rule.kind)});
  for (const op::RuleNumber& number : op::kRuleNumbers) to.push_back(rule.*number.member);
  return to;
}

op::OptimizerRule rule_from_json(const json& from) {
  op::OptimizerRule rule{.kind = parse_optimizer(from.at(0).get<std::string>())};
  std::size_t at = 0;
  for (const op::RuleNumber& number : op::kRuleNumbers) rule.*number.member = from.at(++at);
  validate(rule);
  return rule;
}

}  // namespace

std::string_view to_string(Mode mode) { return mode == Mode::synchronous ? "synchronous" : "asynchronous"; }

static void to_json(json& to, const ChunkSetup& chunk) {
  to = {chunk.name, chunk.elements, chunk.priority, to_json(chunk.rule)};
}
static void from_json(const json& from, ChunkSetup& chunk) {
  chunk = {from.at(0), from.at(1), from.at(2), rule_from_json(from.at(3))};
  if (chunk.elements < 1) fail(ErrorKind::failed, "a chunk has no elements");
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Setup, workers, mode, staleness, backup_workers, first_step, timeout_seconds, chunks)

std::string to_text(const Setup& setup) { return json(setup).dump(1); }

Setup setup_from_text(const std::string& text) {
  try {
    return json::parse(text).get<Setup>();
  } catch (const json::exception& error) {
    fail(ErrorKind::failed, "cannot parse what a worker asks of this server: {}", error.what());
  }
}

void send_text(comm::Communicator& communicator, const std::string& text, int to) {
  const std::uint64_t length = text.size();
  communicator.send(std::as_bytes(std::span(&length, 1)), to, kTextTag);
  communicator.send(std::as_bytes(std::span(text)), to, kTextTag);
}

std::string receive_text(comm::Communicator& communicator, int from) {
  std::uint64_t length = 0;
  communicator.receive(std::as_writable_bytes(std::span(&length, 1)), from, kTextTag);
  if (length > kMostText)
    fail(ErrorKind::failed, "a text of {} bytes was announced; at most {} are allowed", length, kMostText);
  std::string text(length, '\0');
  communicator.receive(std::as_writable_bytes(std::span(text)), from, kTextTag);
  return text;
}

}  // namespace trireme::ps
