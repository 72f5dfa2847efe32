// The MNIST case study of the CSCS report (section 4.4): the network of TensorFlow's tutorial learns handwritten digits
// in one process, then distributed with the same program. Every worker trains on its part of each batch of 64 and
// reports its train accuracy; only worker 0 evaluates on the test images. --data-format selects NCHW or NHWC.
//   trireme data make --out digits --samples 12000 --validation-samples 2000     or a folder with MNIST's four files
//   build/release/examples/mnist digits --epochs 3 --data-format nhwc                        one process
//   trireme launch --workers 2 --program build/release/examples/mnist -- digits              all-reduce
//   trireme launch --workers 2 --ps 1 --program build/release/examples/mnist -- digits       a parameter server
#include <filesystem>
#include <span>

#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t kGlobalBatch = 64;

// Prints a worker's training progress.
class Lines : public train::TrainerObserver {
 public:
  explicit Lines(int worker) : worker_(worker) {}

  void on_step(const train::StepReport& step) override {
    loss_ += step.loss;
    accuracy_ += step.accuracy.value();
    ++steps_;
  }
  void on_epoch(const train::EpochReport& epoch) override {
    fmt::print("epoch {}: worker {}: loss {:.4f}, train accuracy {:.2f} %\n", epoch.epoch, worker_, loss_ / steps_,
               100 * accuracy_ / steps_);
    if (worker_ == 0 && epoch.accuracy) {
      fmt::print("epoch {}: test accuracy {:.2f} %\n", epoch.epoch, 100 * epoch.accuracy->top1_share());
    }
    loss_ = accuracy_ = steps_ = 0;
  }

 private:
  const int worker_;
  double loss_ = 0, accuracy_ = 0, steps_ = 0;
};

train::TrainingOptions parse(std::span<char* const> words) {
  train::TrainingOptions options;
  options.epochs = 3;
  options.evaluate_on = "first";
  auto& step = options.step;
  step.model = "mnist";
  step.init_learning_rate = 0.01, step.weight_decay = 0;
  step.train_accuracy = true;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    if (!word.starts_with("--")) {
      step.data.dir = word;
    } else if (i + 1 == words.size() || (word != "--epochs" && word != "--data-format")) {
      bad_input("{}: there is --epochs N and --data-format nchw or nhwc", word);
    } else if (word == "--epochs") {
      options.epochs = std::atof(words[++i]);
    } else {
      step.data_format = words[++i];
    }
  }
  if (!std::filesystem::is_directory(step.data.dir)) {
    bad_input(
        "'{}' is not a folder with data; give one with MNIST's files, or draw some: trireme data make --out digits",
        step.data.dir);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  train::TrainingOptions options = parse({argv, static_cast<std::size_t>(argc)});
  train::Job job;  // alone, a worker or a server, as the launcher says
  if (job.is_server()) {
    job.serve();
  } else {
    const int workers = job.size().workers;
    if (kGlobalBatch % workers != 0) bad_input("a batch of {} cannot be divided by {}", kGlobalBatch, workers);
    options.step.batch_size = kGlobalBatch / workers;
    train::Trainer trainer(job, options);
    Lines lines(job.workers().rank());
    trainer.run({&lines});
  }
  job.leave();
} catch (const Error& error) {
  fmt::print(stderr, "mnist: {}\n", error.what());
  return exit_code(error.kind());
}
