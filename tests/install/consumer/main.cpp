// Builds a graph, takes a gradient and runs it, all through the installed headers and library. Exit code 0 if the
// figures are right.
#include <array>
#include <cstdio>

#include "trireme/trireme.hpp"
#if __has_include("trireme/onnx/model_file.hpp")  // of a build with protobuf
#include "trireme/onnx/model_file.hpp"
#endif

int main() {
  trireme::Graph graph;
  const auto x = trireme::placeholder(graph, {}, "x");
  const auto w = trireme::variable(graph, {}, trireme::op::Initializer::constant(4), "w");
  const auto loss = trireme::square(w * x);
  [[maybe_unused]] const auto product = w * x + 1.0f;
  const std::array targets{w};
  const auto gradient = trireme::gradients(graph, loss, targets).front();

  for (const auto& name : trireme::backend_names()) {
    const auto backend = trireme::make_backend(name);
    trireme::Session session(graph, *backend);
    const auto values = session.run({loss, gradient}, {{x, 3.0f}});
    std::printf("%s: loss %g, gradient %g\n", name.c_str(), values[0].scalar(), values[1].scalar());
    if (values[0].scalar() != 144 || values[1].scalar() != 72) return 1;
#if __has_include("trireme/onnx/model_file.hpp")
    if (trireme::onnx::to_onnx({"product", graph, x, product, session.variables()}).empty()) return 1;
#endif
  }
  if (trireme::find_model("resnet50").classes != 1001) return 1;
  char program[] = "consumer", command[] = "models", option[] = "--model", name[] = "own";
  char* words[] = {program, command, option, name, nullptr};
  const auto build = [](trireme::LayerBuilder& layers, trireme::Tensor images) {
    return layers.fully_connected(images, 2);
  };
  return trireme::command_line(4, words,
                               {{.name = "own", .image_size = 4, .channels = 1, .classes = 2, .build = build}});
}
