// What a program of one's own brings along: a network, a format of data, an augmentation. A trainer knows them by name,
// and so does the checkpoint.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "tests/support/temporary_folder.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/trireme.hpp"

namespace trireme::train {
namespace {

constexpr int kSize = 8;

// Bright images are of class 1, dark ones of class 0.
class Brightness : public data::Dataset {
 public:
  explicit Brightness(std::int64_t size) : size_(size) {
    info_.format = "brightness";
    info_.classes = 2;
    info_.height = info_.width = kSize;
    info_.channels = 1;
  }
  const data::DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  void read(std::int64_t index, data::Sample& sample) const override {
    sample = {};
    sample.label = static_cast<std::int32_t>(index % 2);
    sample.height = sample.width = kSize;
    sample.channels = 1;
    sample.bytes.assign(kSize * kSize, static_cast<std::byte>(sample.label == 1 ? 200 : 50));
  }
  std::string where(std::int64_t index) const override { return "image " + std::to_string(index); }

 private:
  std::int64_t size_;
  data::DatasetInfo info_;
};

std::atomic<int> darkened{0};

void add_own_things() {
  data::add_format(
      {.name = "brightness",
       .files = "a file 'brightness'",
       .is_there = [](const std::string& path, data::Split) { return std::filesystem::exists(path + "/brightness"); },
       .open =
           [](const std::string&, const data::OpenOptions& options) {
             return std::make_shared<Brightness>(options.split == data::Split::train ? 64 : 10);
           }});
  data::add_augmentation("darker", [](const data::AugmentedImage& image, data::Draws& draws) {
    ++darkened;
    const float by = draws.between(0.9f, 1.0f);
    for (float& value : image.values) value *= by;
    EXPECT_EQ(&image.at(0, 1, 2), &image.values[kSize + 2]);
  });
}

Network small_network(const std::string& name) {
  return {.name = name,
          .description = "one hidden layer",
          .image_size = kSize,
          .channels = 1,
          .classes = 2,
          .batch_size = 8,
          .build = [](LayerBuilder& layers, Tensor images) { return layers.fully_connected(images, 4); }};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(OwnNetwork, IsTrainedEvaluatedKeptResumedAndExported) {
  const testkit::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "data");
  std::fclose(std::fopen((folder / "data/brightness").c_str(), "w"));
  add_own_things();

  TrainingOptions options;
  options.step.data.dir = folder / "data";
  options.step.data.augment = "darker";
  options.step.init_learning_rate = 0.1;
  options.step.autotune = "off";
  options.step.bind = false;
  options.step.train_accuracy = true;
  options.checkpoint_dir = folder / "checkpoints";
  options.epochs = 4;

  struct Watcher : TrainerObserver {
    void on_step(const StepReport& report) override { train_accuracy = report.accuracy.value(); }
    void on_epoch(const EpochReport& report) override { accuracy = report.accuracy; }
    double train_accuracy = 0;
    std::optional<Accuracy> accuracy;
  } watcher;
  Job job;
  {
    Trainer trainer(job, small_network("own"), options);
    EXPECT_EQ(trainer.run({&watcher}), TrainingEnd::done);
    EXPECT_EQ(trainer.steps(), 4 * 64 / 8);
  }
  EXPECT_GE(darkened, 4 * 64);
  EXPECT_EQ(watcher.train_accuracy, 1);
  ASSERT_TRUE(watcher.accuracy);
  EXPECT_EQ(watcher.accuracy->top1, 10);

  const auto kept = open_latest_checkpoint(folder / "checkpoints");
  EXPECT_EQ(kept->state().model, "own");
  EXPECT_EQ(kept->state().others.at("augment"), "darker");

  options.step.data.augment = std::nullopt;
  options.resume = true;
  options.epochs = 5;
  {
    Trainer trainer(job, small_network("own"), options);
    EXPECT_EQ(trainer.first_step(), 32);
    EXPECT_EQ(trainer.run(), TrainingEnd::done);
  }

  // A checkpoint of a program that has one more augmentation.
  Checkpoint foreign{.state = kept->state(), .tensors = {}};
  foreign.state.others["augment"] = "flip,gone";
  for (const std::string& name : kept->tensors().names()) {
    foreign.tensors.push_back({name, kept->tensors().read(name)});
  }
  TrainingOptions of_another = options;
  of_another.checkpoint_dir = folder / "foreign";
  std::filesystem::create_directory(of_another.checkpoint_dir);
  write_checkpoint(foreign, checkpoint_path(of_another.checkpoint_dir, foreign.state.step));
  const std::string refused = message_of([&] { Trainer(job, small_network("own"), of_another); });
  EXPECT_NE(refused.find("used --augment flip,gone, but this program has no augmentation 'gone'"), std::string::npos)
      << refused;

  const ExportSummary summary = export_checkpoint(
      {.checkpoint = folder / "checkpoints", .format = "safetensors", .out = folder / "own.safetensors"});
  EXPECT_EQ(summary.step, 40);
  EXPECT_EQ(summary.model.name, "own");
  job.leave();
}

TEST(OwnNetwork, NamesAreOfOneThing) {
  add_network(small_network("twice"));
  EXPECT_NE(message_of([] { add_network(small_network("twice")); }).find("there is already a network 'twice'"),
            std::string::npos);
  EXPECT_NE(message_of([] { add_network(small_network("resnet50")); }), "");
  EXPECT_NE(message_of([] { set_network(small_network("resnet50")); }), "");
  EXPECT_NE(message_of([] { add_network({.name = "hollow"}); }).find("a function that builds it"), std::string::npos);
  Network few = small_network("few");
  few.classes = 1;
  EXPECT_NE(message_of([&] { add_network(few); }).find("classes 1 "), std::string::npos);
  EXPECT_NE(message_of([] { data::add_augmentation("flip", [](const data::AugmentedImage&, data::Draws&) {}); }), "");
  EXPECT_NE(message_of([] { data::add_augmentation("two words", [](const data::AugmentedImage&, data::Draws&) {}); }),
            "");
  EXPECT_NE(message_of([] { data::add_format({.name = "idx", .files = "", .is_there = {}, .open = {}}); }), "");
  const std::string unknown = message_of([] { data::find_augmentation("blur"); });
  EXPECT_NE(unknown.find("there is no 'blur'; must be none, or some of flip, colour"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace trireme::train
