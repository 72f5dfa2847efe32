#include "trireme/train/stage_tensors.hpp"

#include "trireme/base/json.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::train {
namespace {

constexpr int kTag = 7;

Json to_json(const std::string& name, const TensorType& type) {
  return {{"name", name}, {"integers", type.dtype == DataType::i32}, {"shape", type.shape.dims()}};
}

TensorType type_of(const Json& json) {
  return {json.at("integers").get<bool>() ? DataType::i32 : DataType::f32,
          Shape(json.at("shape").get<std::vector<std::int64_t>>())};
}

std::span<const std::byte> bytes_of(const HostTensor& value) {
  return {static_cast<const std::byte*>(value.data()), static_cast<std::size_t>(value.type().bytes())};
}

HostTensor receive(comm::Communicator& workers, int from, const TensorType& type) {
  HostTensor value(type);
  workers.receive({static_cast<std::byte*>(value.data()), static_cast<std::size_t>(type.bytes())}, from, kTag);
  return value;
}

// What each worker says of its tensors.
std::vector<Json> lists_of_all(comm::Communicator& workers, const Json& own) {
  std::vector<Json> lists;
  for (const std::string& text : comm::all_gather_text(workers, own.dump())) lists.push_back(Json::parse(text));
  return lists;
}

}  // namespace

std::vector<NamedTensor> gather_tensors(comm::Communicator& workers, const PipelineConfig& pipeline,
                                        std::vector<NamedTensor> own) {
  workers.set_context("bringing the stages' variables together");
  if (pipeline.place_of(workers.rank()).replica > 0) own.clear();
  Json list = Json::array();
  for (const NamedTensor& tensor : own) list.push_back(to_json(tensor.name, tensor.value.type()));
  const std::vector<Json> lists = lists_of_all(workers, list);
  if (workers.rank() > 0) {
    for (const NamedTensor& tensor : own) workers.send(bytes_of(tensor.value), 0, kTag);
    return {};
  }
  for (int rank = 1; rank < workers.size(); ++rank) {
    for (const Json& each : lists[static_cast<std::size_t>(rank)]) {
      own.push_back({each.at("name"), receive(workers, rank, type_of(each))});
    }
  }
  return own;
}

std::vector<NamedTensor> give_out_tensors(comm::Communicator& workers,
                                          const std::vector<std::pair<std::string, TensorType>>& wanted,
                                          const std::function<HostTensor(const std::string&)>& read) {
  workers.set_context("giving out the checkpoint's variables");
  Json list = Json::array();
  for (const auto& [name, type] : wanted) list.push_back(to_json(name, type));
  const std::vector<Json> lists = lists_of_all(workers, list);
  if (workers.rank() == 0) {
    for (int rank = 1; rank < workers.size(); ++rank) {
      for (const Json& each : lists[static_cast<std::size_t>(rank)]) {
        workers.send(bytes_of(read(each.at("name"))), rank, kTag);
      }
    }
  }
  std::vector<NamedTensor> own;
  own.reserve(wanted.size());
  for (const auto& [name, type] : wanted)
    own.push_back({name, workers.rank() == 0 ? read(name) : receive(workers, 0, type)});
  return own;
}

}  // namespace trireme::train
