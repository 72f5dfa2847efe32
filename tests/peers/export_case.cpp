// Makes what tests/peers compares with other systems. Usage:
//   export_case network MODEL FOLDER  checkpoint.safetensors with the initial values of a network, images.f32 (a batch
//                                     of two) and the logits.f32 that the network gives for them, plain values
//   export_case mobile FOLDER         the same of the network in tests/onnx/mobile_network.hpp, and mobile.onnx
//   export_case small FOLDER          small.onnx: the file that is stored in tests/onnx
//   export_case events FOLDER         an event file with the scalars loss = 1 / step and learning_rate = 0.5, at the
//                                     steps 1 to 3
#include <fmt/format.h>

#include <string>

#include "tests/onnx/mobile_network.hpp"
#include "tests/onnx/small_network.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/random.hpp"
#include "trireme/models/model.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/event_file.hpp"

namespace trireme {
namespace {

void write_file(const std::string& path, const std::string& bytes) {
  NewFile file(path);
  file.write(bytes);
  file.commit();
}

void write_values(const std::string& path, const HostTensor& tensor) {
  NewFile file(path);
  file.write(std::as_bytes(tensor.f32()));
  file.commit();
}

// Constants get values that show whether they are used in the right place. Weights are scaled up so that what an image
// says is not lost on the way through layers with ReLU: logits that do not depend on it would show nothing.
void set_values(VariableStore& store) {
  for (const NodeId id : store.all()) {
    const Node& variable = store.node(id);
    const op::Initializer& initializer = variable.as<op::Variable>()->initializer;
    HostTensor value = store.get(id);
    if (initializer.kind == op::Initializer::Kind::constant) {
      fill_uniform(value.f32(), initializer.mean - 0.1f, initializer.mean + 0.1f, random_key(5, variable.name));
    } else {
      for (float& weight : value.f32()) weight *= 1.5f;
    }
    store.set(id, value);
  }
}

void write_ends(Session& session, Tensor images, Tensor logits, const std::string& folder) {
  set_values(session.variables());
  HostTensor values(images.type());
  fill_uniform(values.f32(), -1, 1, random_key(3, "images"));
  write_values(folder + "/images.f32", values);
  write_values(folder + "/logits.f32", session.run({logits}, {{images, values}})[0]);
}

void write_network(const std::string& name, const std::string& folder) {
  Graph graph;
  const Model model = build_model(graph, name, {.batch_size = 2, .training = false});
  const auto backend = make_backend(default_backend());
  Session session(graph, *backend);
  write_ends(session, model.images, model.logits, folder);
  const train::TrainingState state{.model = name, .classes = model.info.classes, .step = 1};
  write_checkpoint(take_checkpoint(session.variables(), state), folder + "/checkpoint.safetensors");
}

void write_mobile(const std::string& folder) {
  testkit::MobileNetwork mobile(2);
  const auto backend = make_backend(default_backend());
  Session session(mobile.graph, *backend);
  write_ends(session, mobile.images, mobile.logits, folder);
  write_file(folder + "/mobile.onnx",
             onnx::to_onnx({"mobile", mobile.graph, mobile.images, mobile.logits, session.variables()}));
}

void write_small(const std::string& folder) {
  const testkit::SmallNetwork small;
  VariableStore values(small.graph, 1);
  small.set_values(values);
  write_file(folder + "/small.onnx", onnx::to_onnx({"small", small.graph, small.images, small.logits, values}));
}

void write_events(const std::string& folder) {
  train::EventFile events(folder);
  for (int step = 1; step <= 3; ++step) {
    events.add({.tag = "loss", .step = step, .value = 1.0f / static_cast<float>(step), .wall_seconds = 100.0 + step});
    events.add("learning_rate", step, 0.5f);
  }
}

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (what == "network" && arguments.size() == 3) {
    write_network(arguments[1], arguments[2]);
  } else if (what == "mobile" && arguments.size() == 2) {
    write_mobile(arguments[1]);
  } else if (what == "small" && arguments.size() == 2) {
    write_small(arguments[1]);
  } else if (what == "events" && arguments.size() == 2) {
    write_events(arguments[1]);
  } else {
    fmt::print(stderr, "usage: export_case network MODEL FOLDER | mobile FOLDER | small FOLDER | events FOLDER\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  try {
    return trireme::run({argv + 1, argv + argc});
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "export_case: {}\n", error.what());
    return 1;
  }
}
