#include "trireme/models/families.hpp"

#include <array>

#include "trireme/base/parse.hpp"
#include "trireme/models/networks.hpp"

namespace trireme {
namespace {

constexpr std::array kFamilies{
    NetworkFamily{"resnet<9n+2>_v2",
                  "Keras' CIFAR-10 ResNet v2 of any depth, such as resnet1001_v2; resnet5000_v2, as "
                  "HyPar-Flow calls it, has 4997 layers"},
    NetworkFamily{"amoebanet_d_<L>_<F>", "AmoebaNet-D of L cells and F filters, such as amoebanet_d_18_208"},
    NetworkFamily{"<model>@<size>", "a network for images of another size, such as vgg16@512"}};

// What is between the two, if it begins and ends so.
std::optional<std::string_view> between(std::string_view text, std::string_view begin, std::string_view end) {
  if (text.size() < begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return std::nullopt;
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

std::optional<Network> find_keras_resnet(std::string_view name) {
  constexpr int kDeepest = 100'001, kOfHyparFlow = 5000, kItsLayers = 4997;
  const auto number = between(name, "resnet", "_v2");
  if (!number) return std::nullopt;
  int depth = parse_number<int>(*number).value_or(0);
  if (depth == kOfHyparFlow) depth = kItsLayers;
  if (depth < 11 || depth > kDeepest || depth % 9 != 2) return std::nullopt;
  return Network{.name = std::string(name),
                 .description = fmt::format("Keras' CIFAR-10 ResNet v2 with {} layers{}", depth,
                                            depth == kItsLayers ? ", HyPar-Flow's ResNet-5000" : ""),
                 .image_size = 32,
                 .classes = 10,
                 .build = [blocks = (depth - 2) / 9](LayerBuilder& layers, Tensor images) {
                   return networks::keras_resnet_v2(layers, images, blocks);
                 }};
}

std::optional<Network> find_amoebanet(std::string_view name) {
  constexpr int kMost = 1 << 14;
  const auto numbers = between(name, "amoebanet_d_", "");
  const std::size_t middle = numbers ? numbers->find('_') : std::string_view::npos;
  if (middle == std::string_view::npos) return std::nullopt;
  const int cells = parse_number<int>(numbers->substr(0, middle)).value_or(0);
  const int filters = parse_number<int>(numbers->substr(middle + 1)).value_or(0);
  if (cells < 3 || cells > kMost || cells % 3 != 0 || filters < 8 || filters > kMost || filters % 8 != 0)
    return std::nullopt;
  return Network{.name = std::string(name),
                 .description = fmt::format("AmoebaNet-D with {} cells and {} filters", cells, filters),
                 .classes = 1000,
                 .build = [=](LayerBuilder& layers, Tensor images) {
                   return networks::amoebanet_d(layers, images, cells, filters);
                 }};
}

}  // namespace

std::span<const NetworkFamily> network_families() { return kFamilies; }

std::optional<Network> networks::find_in_families(std::string_view name) {
  std::optional<Network> resnet = find_keras_resnet(name);
  return resnet ? resnet : find_amoebanet(name);
}

}  // namespace trireme
