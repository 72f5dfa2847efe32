// AmoebaNet-D of L cells and F filters, the network of GPipe's measurements: cells of five sums of two operations each,
// over the results of the two cells before (Real et al., arXiv 1802.01548). As in Google's own implementation and in
// GPipe's counts, a normal cell returns its states 0, 3, 4 and 6; the paper draws 4, 5 and 6. No auxiliary head, no
// dropped paths.
#include <optional>
#include <utility>

#include "trireme/models/branches.hpp"
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

using op::PoolKind;

enum class Step : std::uint8_t { same, convolution_1, convolution_3, convolution_7, max_2, max_3, average_3 };

struct Term {
  int state = 0;  // 0: the cell before; 1: the one before that; 2, 3, ...: sums of this cell
  Step step = Step::same;
};

struct Cell {
  std::array<std::array<Term, 2>, 5> sums;
  std::vector<int> results;  // states
};

const Cell kNormal{.sums = {{{{{1, Step::convolution_1}, {1, Step::max_3}}},
                             {{{1, Step::same}, {0, Step::convolution_7}}},
                             {{{0, Step::convolution_1}, {0, Step::convolution_7}}},
                             {{{2, Step::max_3}, {2, Step::same}}},
                             {{{1, Step::average_3}, {5, Step::convolution_1}}}}},
                   .results = {0, 3, 4, 6}};
const Cell kReduction{.sums = {{{{{0, Step::max_2}, {0, Step::max_3}}},
                                {{{2, Step::same}, {1, Step::convolution_3}}},
                                {{{2, Step::convolution_7}, {2, Step::max_3}}},
                                {{{3, Step::same}, {1, Step::max_2}}},
                                {{{2, Step::average_3}, {3, Step::convolution_1}}}}},
                      .results = {4, 5, 6}};

// Several operations read the same state after ReLU.
struct State {
  Tensor value;
  std::optional<Tensor> positive = {};

  Tensor activated() {
    if (!positive) positive = relu(value, "relu");
    return *positive;
  }
};

class Builder {
 public:
  explicit Builder(LayerBuilder& layers) : layers_(layers) {}

  Tensor add(const Cell& cell, State& before, State& before_that, std::int64_t channels) {
    const std::int64_t stride = &cell == &kReduction ? 2 : 1;
    std::vector<State> states{{convolution(before.activated(), {.channels = channels})},
                              {fitted(before_that, before.value.shape(), channels)}};
    for (const auto& [a, b] : cell.sums) {
      const auto result = [&, this](const Term& term) {
        return apply(term.step, states[static_cast<std::size_t>(term.state)], term.state < 2 ? stride : 1);
      };
      const Tensor first = result(a);
      states.push_back({binary(op::BinaryKind::add, first, result(b), "add")});
    }
    std::vector<Tensor> results;
    for (const int state : cell.results) results.push_back(states[static_cast<std::size_t>(state)].value);
    return concat(std::move(results), 1, "concat");
  }

 private:
  // ReLU comes before a convolution, not after it.
  Tensor convolution(Tensor src, ConvolutionConfig config) {
    config.relu = false;
    return layers_.convolution(src, config);
  }

  // To the size and the channels of the cell's other source.
  Tensor fitted(State& state, const Shape& size, std::int64_t channels) {
    const Shape& shape = state.value.shape();
    if (shape[2] != size[2]) return halved(state.activated(), channels);
    return shape[1] == channels ? state.value : convolution(state.activated(), {.channels = channels});
  }

  // Every second pixel, and those diagonally beside them.
  Tensor halved(Tensor src, std::int64_t channels) {
    const Shape& shape = src.shape();
    const Tensor inner = slice(src, {0, 0, 1, 1}, {shape[0], shape[1], shape[2] - 1, shape[3] - 1}, "slice");
    const Tensor beside = pad(inner, {0, 0, 0, 0}, {0, 0, 1, 1}, 0, "pad");
    const ConvolutionConfig half{.channels = channels / 2, .stride = 2, .relu = false, .plain = true};
    const Tensor even = layers_.convolution(src, half);
    return layers_.batch_norm(concat({even, layers_.convolution(beside, half)}, 1, "halves"), {});
  }

  // From and to fewer channels.
  Tensor bottleneck(State& state, const std::vector<ConvolutionConfig>& middle) {
    const std::int64_t channels = state.value.shape()[1];
    Tensor x = convolution(state.activated(), {.channels = channels / 4});
    for (ConvolutionConfig each : middle) {
      each.channels = channels / 4;
      x = convolution(relu(x, "relu"), each);
    }
    return convolution(relu(x, "relu"), {.channels = channels});
  }

  Tensor apply(Step step, State& state, std::int64_t stride) {
    switch (step) {
      case Step::same:
        return state.value;
      case Step::convolution_1:
        return convolution(state.activated(), {.channels = state.value.shape()[1], .stride = stride});
      case Step::convolution_3:
        return bottleneck(state, {{.kernel = {3, 3}, .stride = stride}});
      case Step::convolution_7:
        return bottleneck(state, {{.kernel = {1, 7}}, {.kernel = {7, 1}}});
      case Step::max_2:
        return layers_.pool(state.value, same_pool(PoolKind::max, 2, stride));
      case Step::max_3:
        return layers_.pool(state.value, same_pool(PoolKind::max, 3, stride));
      case Step::average_3:
        return layers_.pool(state.value, same_pool(PoolKind::average_inside, 3, stride));
    }
    return {};
  }

  LayerBuilder& layers_;
};

}  // namespace

Tensor amoebanet_d(LayerBuilder& layers, Tensor images, int cells, std::int64_t filters) {
  layers.use_batch_norm({});
  Builder builder(layers);
  std::int64_t channels = filters / 4;
  State before{layers.convolution(images, {.channels = channels, .kernel = {3, 3}, .stride = 2, .relu = false})};
  State before_that = before;
  int number = 0;
  const auto add = [&](const Cell& cell) {
    const LayerBuilder::Scope scope(layers, "cell" + std::to_string(++number));
    if (&cell == &kReduction) channels *= 2;
    before_that = std::exchange(before, State{builder.add(cell, before, before_that, channels)});
  };
  add(kReduction);
  for (int stage = 0; stage < 3; ++stage) {
    add(kReduction);
    for (int i = 0; i < cells / 3; ++i) add(kNormal);
  }
  return layers.spatial_mean(before.activated());
}

}  // namespace trireme::networks
