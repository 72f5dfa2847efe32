// The MNIST case study of the CSCS report (section 4.4): the network of TensorFlow's tutorial learns handwritten
// digits, first in one process, then the same program distributed. Every worker trains on its part of each batch of 64
// and tells its train accuracy; worker 0 alone evaluates on the test images. NCHW or NHWC is an option.
//
//   trireme data make --out digits --samples 12000 --validation-samples 2000     or a folder with MNIST's four files
//
//   build/release/examples/mnist digits --epochs 3 --data-format nhwc                        one process
//   trireme launch --workers 2 --program build/release/examples/mnist -- digits              all-reduce
//   trireme launch --workers 2 --ps 1 --program build/release/examples/mnist -- digits       a parameter server
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/exit_code.hpp"
#include "trireme/data/choose_preprocessing.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/data/pipeline.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/job.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t kGlobalBatch = 64;
constexpr float kLearningRate = 0.01f;

struct Arguments {
  std::string data;
  int epochs = 3;
  DataFormat format = DataFormat::automatic;
};

DataFormat parse_format(const std::string& text) {
  if (text == "nchw") return DataFormat::nchw;
  if (text == "nhwc") return DataFormat::nhwc;
  bad_input("--data-format {}: must be nchw or nhwc; without it each layer has what is fastest", text);
}

Arguments parse(std::span<char* const> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool is_option = word.starts_with("--");
    if (is_option && i + 1 == words.size()) bad_input("{}: its value is missing", word);
    if (word == "--epochs") {
      arguments.epochs = std::atoi(words[++i]);
      if (arguments.epochs < 1) bad_input("--epochs {}: must be a number above 0", words[i]);
    } else if (word == "--data-format") {
      arguments.format = parse_format(words[++i]);
    } else if (is_option) {
      bad_input("{}: there is --epochs and --data-format", word);
    } else {
      arguments.data = word;
    }
  }
  if (!std::filesystem::is_directory(arguments.data)) {
    bad_input(
        "'{}' is no folder with data; give one with MNIST's files, or draw some digits: trireme data make --out digits "
        "--samples 12000 --validation-samples 2000",
        arguments.data);
  }
  return arguments;
}

SessionOptions session_options(const Arguments& arguments) {
  SessionOptions options;
  options.compile.data_format = arguments.format;
  return options;
}

data::PipelineOptions pipeline_options(const data::Dataset& dataset, const ModelInfo& model, std::int64_t batch,
                                       bool training) {
  data::PipelineOptions options;
  options.batch_size = batch;
  options.shuffle = training;
  options.preprocessing = data::preprocessing_for(data::glimpse(dataset), static_cast<int>(model.image_size),
                                                  static_cast<int>(model.channels), training);
  if (!training) options.end = dataset.size();  // once; in training the sequence goes on, epoch after epoch
  return options;
}

// The network without dropout, on the test images.
class Test {
 public:
  Test(const Arguments& arguments, const Backend& backend)
      : evaluator_({.model = "mnist", .batch_size = kGlobalBatch, .session = session_options(arguments)}, backend),
        images_(data::open_dataset(arguments.data, {.split = data::Split::validation})) {}

  // With the values that are trained.
  double accuracy(const VariableStore& trained) {
    evaluator_.load(trained);
    data::Pipeline pipeline(images_, pipeline_options(*images_, evaluator_.model().info, kGlobalBatch, false));
    return evaluator_.run(pipeline).top1_share();
  }

 private:
  train::Evaluator evaluator_;
  std::shared_ptr<const data::Dataset> images_;
};

void train_network(const Arguments& arguments, parallel::Replicas& replicas) {
  if (kGlobalBatch % replicas.size() != 0) bad_input("a batch of {} cannot be divided evenly", kGlobalBatch);
  const std::int64_t batch = kGlobalBatch / replicas.size();

  // The graph: the network, its loss, and what an update does. Nothing is computed yet.
  Graph graph;
  const Model model = build_model(graph, "mnist", {.batch_size = batch});
  std::vector<Tensor> fetches{model.loss, model.top1};
  const std::vector<Tensor> updates = minimize(model.loss, optimizer_rule(op::OptimizerKind::momentum), kLearningRate);
  fetches.insert(fetches.end(), updates.begin(), updates.end());

  // The step, compiled for this machine. The replicas begin with the same values and exchange gradients in it.
  const auto backend = make_backend(default_backend());
  SessionOptions options = session_options(arguments);
  replicas.configure(graph, options);
  Session session(graph, *backend, options);
  Executable& step = session.prepare(fetches);
  replicas.attach(session, step);
  step.sample_offset = replicas.rank() * batch;  // dropout depends on it: all workers together drop what one would

  // The samples: this worker's part of every batch, read ahead of the step by a thread.
  const auto images = data::open_dataset(arguments.data, {.split = data::Split::train});
  data::PipelineOptions input = pipeline_options(*images, model.info, batch, true);
  input.rank = replicas.rank();
  input.ranks = replicas.size();
  data::Pipeline pipeline(images, input);

  std::optional<Test> test;
  if (replicas.rank() == 0) test.emplace(arguments, *backend);

  const std::int64_t steps = std::max<std::int64_t>(1, images->size() / kGlobalBatch);
  for (int epoch = 1; epoch <= arguments.epochs; ++epoch) {
    double loss = 0, accuracy = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      const data::Batch& samples = pipeline.next();
      std::ranges::copy(samples.images, step.input_f32(model.images).begin());
      std::ranges::copy(samples.labels, step.input_i32(model.labels).begin());
      step.run();
      loss += step.output(0)[0] / static_cast<double>(steps);
      accuracy += step.output(1)[0] / static_cast<double>(steps);
    }
    fmt::print("epoch {}: worker {}: loss {:.4f}, train accuracy {:.2f} %\n", epoch, replicas.rank(), loss,
               100 * accuracy);
    if (!test) continue;
    replicas.sync().settle();  // servers may still be sending the values of the last step
    fmt::print("epoch {}: test accuracy {:.2f} %\n", epoch, 100 * test->accuracy(session.variables()));
  }
  replicas.sync().leave();
}

void run(const Arguments& arguments) {
  train::Job job;  // alone, a worker or a server: the launcher has said
  if (job.is_server()) {
    job.serve();
  } else {
    const auto replicas = job.make_replicas();
    train_network(arguments, *replicas);
  }
  job.leave();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse({argv, static_cast<std::size_t>(argc)}));
  } catch (const Error& error) {
    fmt::print(stderr, "mnist: {}\n", error.what());
    return exit_code(error.kind());
  }
}
