#include "tests/conformance/gradient_check.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using op::BinaryKind;
using op::ReduceKind;
using op::UnaryKind;
using op::Window;
using testkit::CaseBuilder;
using testkit::gradient_mismatches;
using testkit::GradientCase;
using Outputs = std::vector<Tensor>;
using Cases = std::vector<GradientCase>;

std::string case_name(const ::testing::TestParamInfo<GradientCase>& info) { return info.param.name; }

class Gradient : public ::testing::TestWithParam<GradientCase> {};

TEST_P(Gradient, IsWhatFiniteDifferencesSay) {
  for (const bool fuse : {false, true}) {
    const auto mismatches = gradient_mismatches(GetParam(), "reference", {.fuse = fuse});
    EXPECT_TRUE(mismatches.empty()) << GetParam().name << (fuse ? ", fused:\n" : ":\n")
                                    << fmt::format("{}", fmt::join(mismatches, "\n"));
  }
}

TEST(GradientCheck, SeesAWrongGradient) {
  // Half a step from relu's kink the difference is 0.75 and the derivative 1.
  const GradientCase at_kink{"kink",
                             [](CaseBuilder& b) { return Outputs{relu(b.uniform({1}, 1.0f / 256, 1.0f / 256))}; }};
  EXPECT_EQ(gradient_mismatches(at_kink, "reference", {}).size(), 1u);
}

TEST(GradientCheck, SeesAVariableThatMovesNothing) {
  const GradientCase idle{"idle", [](CaseBuilder& b) { return Outputs{b.uniform({2}) * 1e-6f}; }};
  EXPECT_EQ(gradient_mismatches(idle, "reference", {}).size(), 1u);
}

Cases convolution_cases() {
  struct Problem {
    const char* name;
    Shape src, weights;
    Window window;
    std::int64_t groups = 1;
  };
  const std::vector<Problem> problems{
      {"conv_1x1", {2, 3, 2, 3}, {2, 3, 1, 1}, {}},
      {"conv_3x3_same", {1, 2, 4, 3}, {3, 2, 3, 3}, {.pad_before = {1, 1}, .pad_after = {1, 1}}},
      {"conv_asymmetric_padding", {1, 2, 3, 4}, {2, 2, 2, 3}, {.pad_before = {1, 0}, .pad_after = {0, 2}}},
      {"conv_stride_2_odd_size",
       {2, 1, 5, 7},
       {2, 1, 3, 3},
       {.stride = {2, 2}, .pad_before = {0, 1}, .pad_after = {1, 1}}},
      {"conv_stride_leaves_cells_unseen", {1, 2, 6, 4}, {1, 2, 1, 2}, {.stride = {3, 2}}},
      {"conv_dilated", {1, 1, 5, 6}, {2, 1, 2, 3}, {.dilation = {2, 2}, .pad_before = {0, 1}}},
      {"conv_groups", {2, 4, 3, 3}, {6, 2, 2, 2}, {}, 2},
      {"conv_depthwise", {1, 3, 4, 4}, {3, 1, 3, 3}, {.stride = {1, 2}, .pad_before = {1, 1}, .pad_after = {1, 0}}, 3},
      {"conv_one_pixel", {1, 3, 1, 1}, {2, 3, 1, 1}, {}},
  };
  Cases cases;
  for (const Problem& p : problems) {
    cases.push_back({p.name, [p](CaseBuilder& b) {
                       return Outputs{convolution(b.uniform(p.src), b.uniform(p.weights), p.window, p.groups)};
                     }});
    cases.push_back({std::string(p.name) + "_bias", [p](CaseBuilder& b) {
                       return Outputs{convolution_bias(b.uniform(p.src), b.uniform(p.weights),
                                                       b.uniform({p.weights[0]}), p.window, p.groups)};
                     }});
  }
  cases.push_back(
      {"conv_bias_add_relu", [](CaseBuilder& b) {
         const Tensor conv = convolution_bias(b.uniform({1, 2, 3, 3}), b.uniform({2, 2, 2, 2}), b.uniform({2}));
         return Outputs{relu(b.kink(conv + b.uniform({1, 2, 2, 2})))};
       }});
  return cases;
}

Cases pooling_cases() {
  const std::vector<std::pair<std::string, Window>> windows{
      {"2x2", {.kernel = {2, 2}, .stride = {2, 2}}},
      {"3x3_overlapping_odd", {.kernel = {3, 3}, .stride = {2, 2}, .pad_before = {0, 1}, .pad_after = {1, 1}}},
      {"2x3_asymmetric", {.kernel = {2, 3}, .stride = {1, 2}, .pad_before = {1, 0}, .pad_after = {0, 2}}},
  };
  Cases cases;
  for (const auto& [name, window_] : windows) {
    const Window window = window_;
    cases.push_back({"max_pool_" + name, [window](CaseBuilder& b) {
                       return Outputs{max_pool(b.distinct({1, 2, 4, 5}), window)};
                     }});
    for (const bool include_padding : {false, true}) {
      cases.push_back(
          {(include_padding ? "average_pool_include_padding_" : "average_pool_inside_") + name, [=](CaseBuilder& b) {
             return Outputs{average_pool(b.uniform({2, 1, 5, 4}), window, include_padding)};
           }});
    }
  }
  return cases;
}

Cases linear_cases() {
  Cases cases{
      {"fully_connected",
       [](CaseBuilder& b) {
         return Outputs{fully_connected(b.uniform({3, 5}), b.uniform({2, 5}))};
       }},
      {"fully_connected_of_images",
       [](CaseBuilder& b) {
         return Outputs{fully_connected(b.uniform({2, 3, 2, 1}), b.uniform({4, 3, 2, 1}))};
       }},
      {"fully_connected_bias",
       [](CaseBuilder& b) {
         return Outputs{fully_connected_bias(b.uniform({1, 3}), b.uniform({5, 3}), b.uniform({5}))};
       }},
      {"fully_connected_bias_relu",
       [](CaseBuilder& b) {
         return Outputs{relu(b.kink(fully_connected_bias(b.uniform({2, 3}), b.uniform({3, 3}), b.uniform({3}))))};
       }},
      {"bias_images",
       [](CaseBuilder& b) {
         return Outputs{add_bias(b.uniform({2, 3, 2, 2}), b.uniform({3}))};
       }},
      {"bias_matrix",
       [](CaseBuilder& b) {
         return Outputs{add_bias(b.uniform({4, 3}), b.uniform({3}))};
       }},
  };
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      cases.push_back(
          {fmt::format("matmul{}{}", ta ? "_transpose_a" : "", tb ? "_transpose_b" : ""), [=](CaseBuilder& b) {
             return Outputs{
                 matmul(b.uniform(ta ? Shape{4, 3} : Shape{3, 4}), b.uniform(tb ? Shape{2, 4} : Shape{4, 2}), ta, tb)};
           }});
    }
  }
  return cases;
}

Cases normalization_cases() {
  const auto batch_norm = [](CaseBuilder& b, const Shape& shape, bool gamma) {
    const Tensor src = b.distinct(shape);
    Outputs inputs{src};
    if (gamma) inputs.push_back(b.positive({shape[1]}));
    inputs.push_back(b.uniform({shape[1]}));
    return b.graph.add(op::BatchNorm{.epsilon = 1e-3f, .gamma = gamma}, inputs);
  };
  Cases cases;
  for (const bool gamma : {false, true}) {
    const std::string suffix = gamma ? "" : "_without_gamma";
    cases.push_back({"batch_norm" + suffix, [=](CaseBuilder& b) {
                       return Outputs{batch_norm(b, {2, 3, 2, 3}, gamma)};
                     }});
    cases.push_back({"batch_norm_batch_1" + suffix, [=](CaseBuilder& b) {
                       return Outputs{batch_norm(b, {1, 2, 3, 3}, gamma)};
                     }});
    cases.push_back({"batch_norm_matrix" + suffix, [=](CaseBuilder& b) {
                       return Outputs{batch_norm(b, {5, 3}, gamma)};
                     }});
    cases.push_back({"batch_norm_relu" + suffix, [=](CaseBuilder& b) {
                       return Outputs{relu(b.kink(batch_norm(b, {2, 2, 2, 2}, gamma)))};
                     }});
    cases.push_back({"batch_norm_add_relu" + suffix, [=](CaseBuilder& b) {
                       return Outputs{relu(b.kink(batch_norm(b, {2, 2, 2, 2}, gamma) + b.uniform({2, 2, 2, 2})))};
                     }});
    cases.push_back({"batch_norm_inference" + suffix, [=](CaseBuilder& b) {
                       Outputs inputs{b.uniform({2, 3, 2, 2})};
                       if (gamma) inputs.push_back(b.positive({3}));
                       inputs.push_back(b.uniform({3}));
                       inputs.push_back(b.fixed({3}, -1, 1));
                       inputs.push_back(b.fixed({3}, 0.5f, 2));
                       return Outputs{b.graph.add(op::BatchNormInference{.epsilon = 1e-3f, .gamma = gamma}, inputs)};
                     }});
  }
  // A strong alpha: with the default one the neighbours' part would drown in the tolerance.
  cases.push_back({"lrn_5", [](CaseBuilder& b) {
                     return Outputs{lrn(b.uniform({2, 7, 1, 2}), {.size = 5, .alpha = 2, .beta = 0.75f, .k = 1})};
                   }});
  cases.push_back({"lrn_3_of_2_channels", [](CaseBuilder& b) {
                     return Outputs{lrn(b.uniform({1, 2, 3, 1}), {.size = 3, .alpha = 1, .beta = 0.5f, .k = 2})};
                   }});
  return cases;
}

Cases unary_cases() {
  Cases cases;
  for (const UnaryKind kind : {UnaryKind::relu, UnaryKind::leaky_relu, UnaryKind::elu, UnaryKind::sigmoid,
                               UnaryKind::tanh, UnaryKind::softplus, UnaryKind::swish, UnaryKind::gelu, UnaryKind::abs,
                               UnaryKind::square, UnaryKind::sqrt, UnaryKind::exp, UnaryKind::log, UnaryKind::negate}) {
    const bool needs_positive = kind == UnaryKind::sqrt || kind == UnaryKind::log;
    cases.push_back({std::string(to_string(kind)), [=](CaseBuilder& b) {
                       const Shape shape{3, 7};
                       return Outputs{unary(kind, needs_positive ? b.positive(shape) : b.away_from_zero(shape), 0.3f)};
                     }});
  }
  // Multiples of 0.1 from -1 to 1, and kinks in between.
  cases.push_back({"clip", [](CaseBuilder& b) { return Outputs{clip(b.distinct({3, 7}), -0.45f, 0.55f)}; }});
  cases.push_back({"hard_swish", [](CaseBuilder& b) { return Outputs{hard_swish(b.distinct({3, 7}) * 4)}; }});
  cases.push_back({"numbers", [](CaseBuilder& b) { return Outputs{2 - (3 * b.uniform({3, 4}) + 1) / 4}; }});
  return cases;
}

Cases binary_cases() {
  struct Broadcasting {
    const char* name;
    Shape a, b;
  };
  const std::vector<Broadcasting> shapes{{"same", {2, 3}, {2, 3}},
                                         {"row", {2, 3}, {3}},
                                         {"column", {2, 1}, {2, 3}},
                                         {"both", {2, 1, 3}, {4, 1}},
                                         {"scalar", {}, {2, 2}}};
  Cases cases;
  for (const BinaryKind kind : {BinaryKind::add, BinaryKind::subtract, BinaryKind::multiply, BinaryKind::divide,
                                BinaryKind::maximum, BinaryKind::minimum}) {
    for (const Broadcasting& s : shapes) {
      cases.push_back({fmt::format("{}_{}", to_string(kind), s.name), [kind, s](CaseBuilder& b) {
                         // Multiples of 0.1, and in between: never equal. A divisor is well above 0.
                         const Tensor left = b.distinct(s.a, 0.1f);
                         const Tensor right = kind == BinaryKind::divide ? b.positive(s.b) : b.distinct(s.b, 0.05f);
                         return Outputs{binary(kind, left, right)};
                       }});
    }
  }
  cases.push_back({"add_relu", [](CaseBuilder& b) {
                     return Outputs{relu(b.kink(b.uniform({3, 4}) + b.uniform({3, 4})))};
                   }});
  cases.push_back({"times_number", [](CaseBuilder& b) { return Outputs{b.uniform({3, 4}) * 2.5f}; }});
  cases.push_back({"used_twice", [](CaseBuilder& b) {
                     const Tensor x = b.uniform({5});
                     return Outputs{x * x + x};
                   }});
  cases.push_back({"dropout", [](CaseBuilder& b) { return Outputs{dropout(b.uniform({3, 7}), 0.4f)}; }});
  cases.push_back({"broadcast", [](CaseBuilder& b) {
                     return Outputs{b.graph.add(op::Broadcast{{2, 3, 4}, 0.5f}, {b.uniform({3, 1})})};
                   }});
  return cases;
}

Cases structure_cases() {
  Cases cases;
  for (const int axis : {0, 1, 3}) {
    cases.push_back({fmt::format("concat_axis_{}", axis), [axis](CaseBuilder& b) {
                       Shape first{2, 3, 1, 2}, second = first, third = first;
                       second[axis] = 1;
                       third[axis] = 5;
                       return Outputs{concat({b.uniform(first), b.uniform(second), b.uniform(third)}, axis)};
                     }});
  }
  cases.push_back({"concat_of_itself", [](CaseBuilder& b) {
                     const Tensor x = b.uniform({2, 3});
                     return Outputs{concat({x, x})};
                   }});
  cases.push_back({"split", [](CaseBuilder& b) { return split(b.uniform({2, 6, 2, 1}), {1, 3, 2}); }});
  cases.push_back({"split_with_a_part_unused", [](CaseBuilder& b) {
                     const Outputs parts = split(b.uniform({5, 2}), {2, 1, 2}, 0);
                     return Outputs{parts[0], parts[2]};
                   }});
  cases.push_back({"pad", [](CaseBuilder& b) {
                     return Outputs{pad(b.uniform({2, 1, 3}), {0, 1, 2}, {1, 0, 1}, 0.5f)};
                   }});
  cases.push_back({"slice", [](CaseBuilder& b) { return Outputs{slice(b.uniform({3, 4, 3}), {1, 0, 1}, {2, 3, 1})}; }});
  cases.push_back({"reshape", [](CaseBuilder& b) { return Outputs{reshape(b.uniform({3, 4}), {2, 3, 2})}; }});
  cases.push_back({"flatten", [](CaseBuilder& b) { return Outputs{flatten(b.uniform({2, 3, 2, 1}))}; }});
  return cases;
}

Cases reduction_cases() {
  const std::vector<std::pair<std::string, std::vector<int>>> axes_choices{
      {"all", {}}, {"first", {0}}, {"middle", {1}}, {"last_two", {1, 2}}, {"outer", {0, 2}}};
  Cases cases;
  for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::mean, ReduceKind::max}) {
    for (const auto& [name, axes_] : axes_choices) {
      const std::vector<int> axes = axes_;
      for (const bool keep_dims : {false, true}) {
        cases.push_back(
            {fmt::format("reduce_{}_{}{}", to_string(kind), name, keep_dims ? "_keep_dims" : ""), [=](CaseBuilder& b) {
               return Outputs{reduce(kind, b.distinct({2, 3, 4}), axes, keep_dims)};
             }});
      }
    }
  }
  cases.push_back({"l2_loss", [](CaseBuilder& b) { return Outputs{l2_loss(b.uniform({3, 4}))}; }});
  cases.push_back({"l2_loss_scaled", [](CaseBuilder& b) { return Outputs{l2_loss(b.uniform({7}), 0.3f)}; }});
  return cases;
}

Cases loss_cases() {
  Cases cases{
      {"softmax",
       [](CaseBuilder& b) {
         return Outputs{softmax(b.uniform({3, 5}, -2, 2))};
       }},
      {"softmax_rank_3",
       [](CaseBuilder& b) {
         return Outputs{softmax(b.uniform({2, 2, 3}, -2, 2))};
       }},
  };
  for (const float smoothing : {0.0f, 0.1f}) {
    const std::string suffix = smoothing > 0 ? "_smoothed" : "";
    cases.push_back({"softmax_cross_entropy" + suffix, [=](CaseBuilder& b) {
                       return Outputs{softmax_cross_entropy(b.uniform({3, 5}, -2, 2), b.labels({4, 0, 2}), smoothing)};
                     }});
    cases.push_back({"softmax_cross_entropy_batch_1" + suffix, [=](CaseBuilder& b) {
                       return Outputs{softmax_cross_entropy(b.uniform({1, 3}), b.labels({1}), smoothing)};
                     }});
    // Through the losses of the single samples, each with a weight of its own.
    cases.push_back(
        {"softmax_cross_entropy_samples" + suffix, [=](CaseBuilder& b) {
           return Outputs{b.graph.add(op::SoftmaxCrossEntropy{smoothing}, {b.uniform({4, 3}), b.labels({0, 1, 2, 1})})};
         }});
  }
  return cases;
}

// Everything together: a convolution with batch norm, a shortcut, pooling and a classifier.
Cases network_cases() {
  return {
      {"small_network", [](CaseBuilder& b) {
         const Tensor image = b.uniform({2, 2, 4, 4});
         const Tensor conv = convolution(image, b.uniform({2, 2, 3, 3}), {.pad_before = {1, 1}, .pad_after = {1, 1}});
         const Tensor norm = b.graph.add(op::BatchNorm{}, {conv, b.positive({2}), b.uniform({2})});
         const Tensor block = unary(UnaryKind::softplus, norm + image);
         const Tensor pooled = average_pool(block, {.kernel = {2, 2}, .stride = {2, 2}});
         const Tensor logits = fully_connected_bias(pooled, b.uniform({3, 2, 2, 2}), b.uniform({3}));
         return Outputs{softmax_cross_entropy(logits, b.labels({2, 0}))};
       }}};
}

INSTANTIATE_TEST_SUITE_P(Convolution, Gradient, ::testing::ValuesIn(convolution_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Pooling, Gradient, ::testing::ValuesIn(pooling_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Linear, Gradient, ::testing::ValuesIn(linear_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Normalization, Gradient, ::testing::ValuesIn(normalization_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Unary, Gradient, ::testing::ValuesIn(unary_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Binary, Gradient, ::testing::ValuesIn(binary_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Structure, Gradient, ::testing::ValuesIn(structure_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Reduction, Gradient, ::testing::ValuesIn(reduction_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Loss, Gradient, ::testing::ValuesIn(loss_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Network, Gradient, ::testing::ValuesIn(network_cases()), case_name);

}  // namespace
}  // namespace trireme
