#include "trireme/backend/onednn/batch_statistics.hpp"
#include "trireme/backend/onednn/channel_kernel.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {

using dnnl::memory;

namespace {

// Layouts to ask the library for; it chooses those that are absent. dst (batch x out) is always plain.
struct Candidate {
  std::optional<Layout> src, weights;
};

struct Problem {
  Shape src, weights, dst;
  bool bias = false;

  InnerProductProblem describe(const Candidate& candidate) const {
    return {.src = candidate.src ? to_desc(src, *candidate.src) : any_desc(src),
            .weights = candidate.weights ? to_desc(weights, *candidate.weights) : any_desc(weights),
            .bias = bias ? to_desc(Shape{weights[0]}, Layout::plain(1)) : memory::desc(),
            .dst = to_desc(dst, Layout::plain(2))};
  }
};

struct Tensors {
  memory::desc src, weights;
};
Tensors tensors(const dnnl::inner_product_forward::primitive_desc& desc) {
  return {desc.src_desc(), desc.weights_desc()};
}
Tensors tensors(const dnnl::inner_product_backward_data::primitive_desc& desc) {
  return {desc.diff_src_desc(), desc.weights_desc()};
}
Tensors tensors(const dnnl::inner_product_backward_weights::primitive_desc& desc) {
  return {desc.src_desc(), desc.diff_weights_desc()};
}

template <typename PrimitiveDesc>
struct Found {
  PrimitiveDesc desc;
  Layout src, weights;
};

// The first candidate for which the library has fast code (matrix multiplication counts), else the last possible one.
template <typename PrimitiveDesc, typename Create>
Found<PrimitiveDesc> find(const Problem& problem, const std::vector<Candidate>& candidates, const std::string& name,
                          Create create) {
  std::optional<Found<PrimitiveDesc>> slow;
  for (const Candidate& candidate : candidates) {
    PrimitiveDesc desc = create(problem.describe(candidate));
    if (!desc) continue;
    const Tensors t = tensors(desc);
    auto src = to_layout(t.src, {candidate.src ? &*candidate.src : nullptr});
    auto weights = to_layout(t.weights, {candidate.weights ? &*candidate.weights : nullptr});
    if (!src || !weights) continue;
    Found<PrimitiveDesc> found{desc, std::move(*src), std::move(*weights)};
    if (!is_reference(desc.impl_info_str())) return found;
    slow = std::move(found);
  }
  if (!slow) {
    fail(ErrorKind::failed, "oneDNN {} has no inner product for '{}': src {}, weights {}", library_version(), name,
         to_string(problem.src), to_string(problem.weights));
  }
  return std::move(*slow);
}

// The weights' trailing axes in src's order: one matrix in all three directions, so training needs no reorder.
Layout weights_like(const Layout& src) { return src; }

// The faster of the library's kernel and, if there is one, our own for the same src.
KernelChoice fastest(const Problem& problem, const LinearLayouts& layouts, KernelChoice library,
                     std::optional<KernelChoice> own, const KernelRequest& request, const Tuner& tuner) {
  std::vector<Tuner::Alternative> alternatives;
  alternatives.push_back({"library", std::move(library)});
  if (own) alternatives.push_back({"own", std::move(*own)});
  const std::string text =
      fmt::format("{} | src {} {} | weights {} {}", label_of(request.node.op), to_string(problem.src),
                  layouts.src.name(), to_string(problem.weights), layouts.weights.name());
  return tuner.fastest(text, std::move(alternatives), request);
}

}  // namespace

KernelChoice make(const op::FullyConnected& operation, const KernelRequest& request, const dnnl::engine& engine,
                  const Tuner& tuner) {
  const Problem problem{request.inputs[0].shape, request.inputs[1].shape, request.node.outputs[0].shape,
                        operation.bias};
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops after;
  if (operation.activation == op::Activation::relu) append_eltwise(after, dnnl::algorithm::eltwise_relu, 0, 0);
  attributes.set_post_ops(after);

  const Layout& src = request.inputs[0].layout;
  const Layout plain = Layout::plain(problem.src.rank());
  std::vector<Candidate> candidates;
  if (!request.input_open[1]) candidates.push_back({src, request.inputs[1].layout});
  if (request.training) candidates.push_back({src, weights_like(src)});
  candidates.insert(candidates.end(), {{src, {}}, {plain, {}}, {plain, plain}});
  const auto found = find<dnnl::inner_product_forward::primitive_desc>(
      problem, candidates, request.node.name, [&](const InnerProductProblem& described) {
        return inner_product_forward(engine, described, request.training, attributes);
      });

  KernelChoice choice;
  choice.inputs = {found.src, found.weights};
  choice.outputs = {Layout::plain(2)};
  std::vector<Argument> arguments{Argument::input(DNNL_ARG_SRC, found.desc.src_desc(), 0),
                                  Argument::input(DNNL_ARG_WEIGHTS, found.desc.weights_desc(), 1),
                                  Argument::output(DNNL_ARG_DST, found.desc.dst_desc())};
  if (operation.bias) {
    choice.inputs.push_back(Layout::plain(1));
    arguments.push_back(Argument::input(DNNL_ARG_BIAS, found.desc.bias_desc(), 2));
  }
  set_kernel(choice, engine, found.desc, std::move(arguments));
  // Weights that already have a layout keep it.
  const Layout like_src = weights_like(found.src);
  const bool free = request.input_open[1] || request.inputs[1].layout == like_src;
  const LinearLayouts layouts{found.src, free ? like_src : found.weights};
  return fastest(problem, layouts, std::move(choice), own_linear(operation, request, layouts), request, tuner);
}

KernelChoice make(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner) {
  const Problem problem{operation.src_shape, request.inputs[1].shape, request.inputs[0].shape};
  const Layout& weights = request.inputs[1].layout;
  const Layout plain = Layout::plain(problem.src.rank());
  std::vector<Candidate> candidates;
  if (!request.input_open[1]) {
    if (const auto wish = wished(request)) candidates.push_back({wish, weights});
    candidates.insert(candidates.end(), {{weights_like(weights), weights}, {{}, weights}});
  }
  candidates.insert(candidates.end(), {{plain, plain}, {}});
  const auto found = find<dnnl::inner_product_backward_data::primitive_desc>(
      problem, candidates, request.node.name,
      [&](const InnerProductProblem& described) { return inner_product_backward_data(engine, described); });

  KernelChoice choice;
  choice.inputs = {Layout::plain(2), found.weights};
  choice.outputs = {found.src};
  set_kernel(choice, engine, found.desc,
             {Argument::input(DNNL_ARG_DIFF_DST, found.desc.diff_dst_desc(), 0),
              Argument::input(DNNL_ARG_WEIGHTS, found.desc.weights_desc(), 1),
              Argument::output(DNNL_ARG_DIFF_SRC, found.desc.diff_src_desc())});
  const LinearLayouts layouts{found.src, found.weights};
  return fastest(problem, layouts, std::move(choice), own_linear(operation, request, layouts), request, tuner);
}

KernelChoice make(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner) {
  const Problem problem{request.inputs[0].shape, request.node.outputs[0].shape, request.inputs[1].shape,
                        operation.bias};
  const Layout& src = request.inputs[0].layout;
  const Layout plain = Layout::plain(problem.src.rank());
  std::vector<Candidate> candidates;
  if (const auto wish = wished(request)) candidates.push_back({src, wish});
  candidates.insert(candidates.end(), {{src, weights_like(src)}, {src, {}}, {plain, plain}});
  const auto found = find<dnnl::inner_product_backward_weights::primitive_desc>(
      problem, candidates, request.node.name,
      [&](const InnerProductProblem& described) { return inner_product_backward_weights(engine, described); });

  KernelChoice choice;
  choice.inputs = {found.src, Layout::plain(2)};
  choice.outputs = {found.weights};
  std::vector<Argument> arguments{Argument::input(DNNL_ARG_SRC, found.desc.src_desc(), 0),
                                  Argument::input(DNNL_ARG_DIFF_DST, found.desc.diff_dst_desc(), 1),
                                  Argument::output(DNNL_ARG_DIFF_WEIGHTS, found.desc.diff_weights_desc(), 0)};
  if (operation.bias) {
    choice.outputs.push_back(Layout::plain(1));
    arguments.push_back(Argument::output(DNNL_ARG_DIFF_BIAS, found.desc.diff_bias_desc(), 1));
  }
  set_kernel(choice, engine, found.desc, std::move(arguments));
  const LinearLayouts layouts{found.src, found.weights};
  return fastest(problem, layouts, std::move(choice), own_linear(operation, request, layouts), request, tuner);
}

KernelChoice make(const op::MatMul& operation, const KernelRequest& request, const dnnl::engine& engine) {
  // A transposed matrix is the plain one with its axes swapped.
  const auto matrix = [](const Shape& shape, bool transposed) {
    return transposed ? to_desc(Shape{shape[1], shape[0]}, Layout{.order = {1, 0}, .blocks = {}})
                      : to_desc(shape, Layout::plain(2));
  };
  const memory::desc a = matrix(request.inputs[0].shape, operation.transpose_a);
  const memory::desc b = matrix(request.inputs[1].shape, operation.transpose_b);
  const memory::desc dst = matrix(request.node.outputs[0].shape, false);
  const auto desc = matmul(engine, a, b, dst);
  if (!desc) {
    fail(ErrorKind::failed, "oneDNN {} has no matrix product for '{}': {} by {}", library_version(), request.node.name,
         to_string(request.inputs[0].shape), to_string(request.inputs[1].shape));
  }
  KernelChoice choice;
  choice.inputs = {Layout::plain(2), Layout::plain(2)};
  choice.outputs = {Layout::plain(2)};
  set_kernel(choice, engine, desc,
             {Argument::input(DNNL_ARG_SRC, a, 0), Argument::input(DNNL_ARG_WEIGHTS, b, 1),
              Argument::output(DNNL_ARG_DST, dst)});
  return choice;
}

KernelChoice make(const op::Bias& operation, const KernelRequest& request, const dnnl::engine&) {
  const ChannelView view = view_of_src(request);
  KernelChoice choice = channel_kernel(
      request, [operation, view]<typename Element>(Element, const Operands& operands, const RunContext&) {
        const float* bias = operands.input(1);
        const ChannelAffine affine(view, operands.scratch<float>());
        for (std::int64_t channel = 0; channel < view.padded_channels(); ++channel) {
          const bool real = channel < view.channels;
          affine.set(channel, 0, real ? 1 : 0, real ? bias[channel] : 0);
        }
        const Strips strips(view);
        const AffineOperands<Element> loops{operands.input<Element>(0), nullptr, operands.output<Element>(),
                                            operation.activation == op::Activation::relu};
#pragma omp parallel if (view.elements() > kParallelElements)
        apply_channels(strips, affine, loops);
      });
  choice.scratch_bytes = ChannelAffine::bytes(view);
  choice.in_place = {{0, 0}};
  return choice;
}

KernelChoice make(const op::BiasBackward&, const KernelRequest& request, const dnnl::engine&) {
  const ChannelView view = view_of_src(request);
  KernelChoice choice =
      channel_kernel(request, [view]<typename Element>(Element, const Operands& operands, const RunContext&) {
        const auto* diff_dst = operands.input<Element>(0);
        float* diff_bias = operands.output();
        auto* partials = operands.scratch<double>();
        const Strips strips(view);
#pragma omp parallel if (view.elements() > kParallelElements)
        {
#pragma omp for schedule(static)
          for (std::int64_t i = 0; i < strips.count(); ++i) strip_sums(strips, i, diff_dst, partials);
#pragma omp for schedule(static)
          for (std::int64_t channel = 0; channel < view.channels; ++channel) {
            diff_bias[channel] = static_cast<float>(added_sums(strips, channel, partials).first);
          }
        }
      });
  choice.scratch_bytes = partial_count(Strips(view)) * static_cast<std::int64_t>(sizeof(double));
  return choice;
}

}  // namespace trireme::onednn
