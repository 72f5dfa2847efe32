#include <functional>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/memory_layout.hpp"
#include "trireme/backend/onednn/primitive_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::onednn {

using dnnl::memory;

namespace {

// A convolution in the library's terms. The tensors are src, weights and dst, or their gradients.
struct Problem {
  Shape src, weights, dst;
  op::Window window;
  std::int64_t groups = 1;
  bool bias = false;
  DataType type = DataType::f32;  // of src and dst
  DataType weights_type = type;

  memory::desc any_weights() const {
    return groups == 1 ? any_desc(weights, weights_type) : any_grouped_desc(weights, groups, weights_type);
  }
  std::optional<memory::desc> weights_desc(const Layout& layout) const {
    return groups == 1 ? to_desc(weights, layout, weights_type)
                       : to_grouped_desc(weights, groups, layout, weights_type);
  }
  std::optional<Layout> weights_layout(const memory::desc& desc, const std::vector<const Layout*>& preferred) const {
    return groups == 1 ? to_layout(desc, preferred) : from_grouped_desc(desc, preferred);
  }
  memory::desc bias_desc() const { return bias ? to_desc(Shape{weights[0]}, Layout::plain(1)) : memory::desc(); }
};

// Layouts to ask the library for; it chooses those that are absent.
struct Candidate {
  std::optional<Layout> src, weights, dst;
};

template <typename PrimitiveDesc>
using Create = std::function<PrimitiveDesc(const ConvolutionProblem&)>;

std::optional<ConvolutionProblem> describe(const Problem& problem, const Candidate& candidate) {
  ConvolutionProblem result;
  result.src = candidate.src ? to_desc(problem.src, *candidate.src, problem.type) : any_desc(problem.src, problem.type);
  result.dst = candidate.dst ? to_desc(problem.dst, *candidate.dst, problem.type) : any_desc(problem.dst, problem.type);
  const auto weights = candidate.weights ? problem.weights_desc(*candidate.weights) : problem.any_weights();
  if (!weights) return std::nullopt;
  result.weights = *weights;
  result.bias = problem.bias_desc();
  const op::Window& window = problem.window;
  result.strides = {window.stride[0], window.stride[1]};
  result.dilates = {window.dilation[0] - 1, window.dilation[1] - 1};
  result.pad_before = {window.pad_before[0], window.pad_before[1]};
  result.pad_after = {window.pad_after[0], window.pad_after[1]};
  return result;
}

template <typename PrimitiveDesc>
struct Found {
  PrimitiveDesc desc;
  Format src, weights, dst;
};

// A primitive descriptor's memory descriptors, under the same names in all three directions.
struct Tensors {
  memory::desc src, weights, dst;
};
Tensors tensors(const dnnl::convolution_forward::primitive_desc& desc) {
  return {desc.src_desc(), desc.weights_desc(), desc.dst_desc()};
}
Tensors tensors(const dnnl::convolution_backward_data::primitive_desc& desc) {
  return {desc.diff_src_desc(), desc.weights_desc(), desc.diff_dst_desc()};
}
Tensors tensors(const dnnl::convolution_backward_weights::primitive_desc& desc) {
  return {desc.src_desc(), desc.diff_weights_desc(), desc.diff_dst_desc()};
}

// What the library has for a candidate and algorithm, if the plan can express its layouts.
template <typename PrimitiveDesc>
std::optional<Found<PrimitiveDesc>> attempt(const Problem& problem, const Candidate& candidate,
                                            dnnl::algorithm algorithm, const Create<PrimitiveDesc>& create) {
  auto described = describe(problem, candidate);
  if (!described) return std::nullopt;
  described->algorithm = algorithm;
  PrimitiveDesc desc = create(*described);
  if (!desc) return std::nullopt;
  const Tensors t = tensors(desc);
  const auto prefer = [](const std::optional<Layout>& layout) {
    return std::vector<const Layout*>{layout ? &*layout : nullptr};
  };
  auto src = to_layout(t.src, prefer(candidate.src));
  auto weights = problem.weights_layout(t.weights, prefer(candidate.weights));
  auto dst = to_layout(t.dst, prefer(candidate.dst));
  if (!src || !weights || !dst) return std::nullopt;
  return Found<PrimitiveDesc>{std::move(desc),
                              {std::move(*src), problem.type},
                              {std::move(*weights), problem.weights_type},
                              {std::move(*dst), problem.type}};
}

// The first candidate with generated code for the same instruction set as the last possible candidate, else that one.
// The last candidate is the one with the most freedom.
template <typename PrimitiveDesc>
std::optional<Found<PrimitiveDesc>> find(const Problem& problem, const std::vector<Candidate>& candidates,
                                         const Create<PrimitiveDesc>& create) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  std::size_t last = candidates.size();
  std::optional<Found<PrimitiveDesc>> fallback;
  while (!fallback && last > 0) fallback = attempt(problem, candidates[--last], kDirect, create);
  for (std::size_t i = 0; fallback && i < last; ++i) {
    auto result = attempt(problem, candidates[i], kDirect, create);
    if (!result) continue;
    const std::string_view implementation = result->desc.impl_info_str();
    const std::string_view best = fallback->desc.impl_info_str();
    if (is_generated(implementation) && instruction_set(implementation) == instruction_set(best)) return result;
  }
  return fallback;
}

// Everything besides the machine that the time depends on.
std::string problem_text(const Problem& problem, const KernelRequest& request, const Format& src, const Format& dst) {
  return fmt::format("{} | src {} {} | weights {} | dst {} {} | {} | groups {}", label_of(request.node.op),
                     to_string(problem.src), src.name(), to_string(problem.weights), to_string(problem.dst), dst.name(),
                     to_string(problem.window), problem.groups);
}

constexpr const char* kChannelsLast = "channels_last";
constexpr const char* kInFp32 = "in_fp32";

// For kernels that know only f32.
template <typename PrimitiveDesc>
OwnLayouts layouts_of(const Found<PrimitiveDesc>& found) {
  return {.src = found.src.layout, .dst = found.dst.layout, .weights = {found.weights.layout}};
}

// The f32 kernel for a request, wrapped to read and write activations as `like` does. Weights are f32, as the variable.
template <typename Operation>
KernelChoice in_fp32(const Operation& operation, const KernelRequest& request, const KernelChoice& like,
                     const dnnl::engine& engine, const Tuner& tuner) {
  constexpr bool kReadsWeights = !std::is_same_v<Operation, op::ConvolutionBackwardWeights>;
  const auto is_weights = [](std::size_t input) { return kReadsWeights && input == 1; };
  KernelRequest plain = request;
  plain.precision = Precision::fp32;
  for (std::size_t i = 0; i < plain.inputs.size(); ++i) {
    if (!is_weights(i)) plain.inputs[i] = {DataType::f32, request.inputs[i].shape, like.inputs[i].layout};
  }
  KernelChoice inner = make(operation, plain, engine, tuner);
  std::vector<Format> inputs = like.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_weights(i)) inputs[i] = inner.inputs[i];
  }
  return with_reorders(std::move(inner), request, inputs, like.outputs, engine);
}

// The direct convolution in bf16, or the fastest f32 kernel with conversions around it: for some shapes the library is
// much slower in bf16, and it has Winograd only in f32. Nothing if it has no generated code for bf16.
template <typename Operation, typename PrimitiveDesc, typename Complete>
std::optional<KernelChoice> fastest_in_bf16(const Operation& operation, const Problem& problem,
                                            const std::vector<Candidate>& candidates, const KernelRequest& request,
                                            const Tuner& tuner, const dnnl::engine& engine,
                                            const Create<PrimitiveDesc>& create, const Complete& complete) {
  const auto direct = find(problem, candidates, create);
  if (!direct || !is_generated(direct->desc.impl_info_str())) return std::nullopt;
  std::vector<Tuner::Alternative> alternatives;
  alternatives.push_back({"direct", complete(*direct)});
  if (tuner.options().autotune != Autotune::off || tuner.options().force == kInFp32)
    alternatives.push_back({kInFp32, in_fp32(operation, request, alternatives.front().choice, engine, tuner)});
  // Without Winograd, another f32 kernel may be fastest.
  const std::string text = problem_text(problem, request, direct->src, direct->dst);
  return tuner.fastest(tuner.options().exact ? text + " | exact" : text, std::move(alternatives), request);
}

// The fastest of the direct convolution and, if possible for the same activations, Winograd by the library and our own.
// Full tuning also tries channels last with reorders of all inputs and outputs, so that the neighbors stay as they are.
// complete() makes a kernel of what was found.
template <typename Operation, typename PrimitiveDesc, typename Complete>
KernelChoice fastest(const Operation& operation, const Problem& problem, const std::vector<Candidate>& candidates,
                     const std::optional<Layout>& weights, const KernelRequest& request, const Tuner& tuner,
                     const dnnl::engine& engine, const Create<PrimitiveDesc>& create, const Complete& complete) {
  const auto found_direct = find(problem, candidates, create);
  if (!found_direct) {
    fail(ErrorKind::failed, "oneDNN {} has no convolution for '{}': src {}, weights {}, {}", library_version(),
         request.node.name, to_string(problem.src), to_string(problem.weights), to_string(problem.window));
  }
  const Found<PrimitiveDesc>& direct = *found_direct;
  std::vector<Tuner::Alternative> alternatives;
  alternatives.push_back({"direct", complete(direct)});
  OwnLayouts layouts = layouts_of(direct);
  if (weights) layouts.weights.insert(layouts.weights.begin(), *weights);
  if (tuner.options().autotune == Autotune::full || tuner.options().force == kChannelsLast) {
    const Layout last = Layout::channels_last(4);
    const auto found = attempt(problem, {last, {}, last}, dnnl::algorithm::convolution_direct, create);
    if (found && is_generated(found->desc.impl_info_str()) && !(found->src == direct.src && found->dst == direct.dst)) {
      const KernelChoice& first = alternatives.front().choice;
      alternatives.push_back(
          {kChannelsLast, with_reorders(complete(*found), request, first.inputs, first.outputs, engine)});
    }
  }
  if (!tuner.options().exact) {
    // With asymmetric padding, the library's backward data is wrong (seen with 2.6.3).
    const bool symmetric = problem.window.pad_before == problem.window.pad_after;
    for (const auto& of_weights : {weights, std::optional<Layout>()}) {
      if (!symmetric) break;
      const auto found =
          attempt(problem, {layouts.src, of_weights, layouts.dst}, dnnl::algorithm::convolution_winograd, create);
      if (!found) continue;
      alternatives.push_back({"winograd", complete(*found)});
      break;
    }
    if (winograd::possible(problem.window, problem.groups, layouts))
      alternatives.push_back({"own_winograd", winograd::choice(operation, request, layouts)});
  }
  return tuner.fastest(problem_text(problem, request, direct.src, direct.dst), std::move(alternatives), request);
}

// The layout that --data-format forces on activations.
std::optional<Layout> forced_layout(DataFormat format) {
  if (format == DataFormat::nchw) return Layout::plain(4);
  if (format == DataFormat::nhwc) return Layout::channels_last(4);
  return std::nullopt;
}

// The library keeps channels last only if asked for it on both sides.
std::optional<Layout> beside(const Layout& given) {
  if (given == Layout::channels_last(4)) return given;
  return std::nullopt;
}

std::optional<Layout> given_weights(const KernelRequest& request, std::size_t input) {
  if (request.input_open[input]) return std::nullopt;
  return request.inputs[input].layout;
}

// Each candidate with the given (or wished) weights, then with the library's choice; plain weights last but one, for
// groups whose blocks the plan's layouts cannot express.
std::vector<Candidate> with_weights(const std::vector<Candidate>& candidates, const std::optional<Layout>& weights) {
  std::vector<Candidate> result;
  for (const Candidate& candidate : candidates) {
    if (weights) result.push_back({candidate.src, weights, candidate.dst});
    result.push_back({candidate.src, std::nullopt, candidate.dst});
  }
  Candidate plain = candidates.back();
  plain.weights = Layout::plain(4);
  result.insert(result.end() - 1, plain);
  return result;
}

// The layout of the weights' gradient for these activations: best for the variable if other kernels read copies of it.
std::optional<Layout> gradient_layout(Problem problem, const Layout& src, const Layout& dst,
                                      const dnnl::engine& engine) {
  problem.weights_type = DataType::f32;
  const Create<dnnl::convolution_backward_weights::primitive_desc> create = [&](const ConvolutionProblem& described) {
    return convolution_backward_weights(engine, described);
  };
  const auto found = attempt(problem, {src, {}, dst}, dnnl::algorithm::convolution_direct, create);
  return found ? std::optional(found->weights.layout) : std::nullopt;
}

KernelChoice forward_kernel(const op::Convolution& operation,
                            const Found<dnnl::convolution_forward::primitive_desc>& found, const dnnl::engine& engine) {
  KernelChoice choice;
  choice.inputs = {found.src, found.weights};
  choice.outputs = {found.dst};
  std::vector<Argument> arguments{Argument::input(DNNL_ARG_SRC, found.desc.src_desc(), 0),
                                  Argument::input(DNNL_ARG_WEIGHTS, found.desc.weights_desc(), 1),
                                  Argument::output(DNNL_ARG_DST, found.desc.dst_desc())};
  if (operation.bias) {
    choice.inputs.emplace_back(Layout::plain(1));
    arguments.push_back(Argument::input(DNNL_ARG_BIAS, found.desc.bias_desc(), 2));
  }
  if (!operation.add) {
    set_kernel(choice, engine, found.desc, std::move(arguments));
    return choice;
  }
  // The library adds to what dst holds: the addend, in the same memory or copied there.
  const int addend = operation.bias ? 3 : 2;
  choice.inputs.push_back(found.dst);
  choice.in_place = {{addend, 0}};
  const memory::desc dst = found.desc.dst_desc();
  std::vector<Step> steps;
  steps.push_back(make_step(choice, reorder(engine, dst, dst),
                            {Argument::input(DNNL_ARG_FROM, dst, addend), Argument::output(DNNL_ARG_TO, dst)}, true));
  steps.push_back(make_step(choice, found.desc, std::move(arguments)));
  choice.implementation = found.desc.impl_info_str();
  choice.kernel = std::make_unique<PrimitiveKernel>(engine, std::move(steps));
  return choice;
}

// Candidates for the activations: the forced layout, else those in `free` and then the library's choice.
std::vector<Candidate> candidates_for(const KernelRequest& request, std::vector<Candidate> free) {
  if (const auto forced = forced_layout(request.data_format)) return {{forced, {}, forced}};
  free.push_back({});
  return free;
}

std::optional<KernelChoice> convolution(const op::Convolution& operation, const KernelRequest& request,
                                        const dnnl::engine& engine, const Tuner& tuner, DataType type) {
  const Problem problem{.src = request.inputs[0].shape,
                        .weights = request.inputs[1].shape,
                        .dst = request.node.outputs[0].shape,
                        .window = operation.window,
                        .groups = operation.groups,
                        .bias = operation.bias,
                        .type = type};
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops after;
  if (operation.add) after.append_sum(1.0f);
  if (operation.activation == op::Activation::relu) append_eltwise(after, dnnl::algorithm::eltwise_relu, 0, 0);
  attributes.set_post_ops(after);

  const Layout& src = request.inputs[0].layout;
  std::vector<Candidate> free;
  if (const auto wish = wished(request)) free.push_back({src, {}, wish});
  free.push_back({src, {}, beside(src)});
  const std::vector<Candidate> candidates = candidates_for(request, std::move(free));
  using PrimitiveDesc = dnnl::convolution_forward::primitive_desc;
  const Create<PrimitiveDesc> create = [&](const ConvolutionProblem& described) {
    // For inference, the library would store Winograd's weights in an order only it knows.
    const bool training = request.training || described.algorithm == dnnl::algorithm::convolution_winograd;
    return convolution_forward(engine, described, training, attributes);
  };
  const auto complete = [&](const Found<PrimitiveDesc>& found) {
    KernelChoice choice = forward_kernel(operation, found, engine);
    if (type == DataType::bf16 && request.training && request.input_open[1]) {
      if (auto kept = gradient_layout(problem, found.src.layout, found.dst.layout, engine)) choice.kept[1] = *kept;
    }
    return choice;
  };
  if (type == DataType::bf16)
    return fastest_in_bf16(operation, problem, with_weights(candidates, {}), request, tuner, engine, create, complete);
  const auto given = given_weights(request, 1);
  return fastest(operation, problem, with_weights(candidates, given), given, request, tuner, engine, create, complete);
}

std::optional<KernelChoice> convolution(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                        const dnnl::engine& engine, const Tuner& tuner, DataType type) {
  const Problem problem{.src = operation.src_shape,
                        .weights = request.inputs[1].shape,
                        .dst = request.inputs[0].shape,
                        .window = operation.window,
                        .groups = operation.groups,
                        .type = type};
  const Layout& diff_dst = request.inputs[0].layout;
  std::vector<Candidate> free;
  if (const auto wish = wished(request)) free.push_back({wish, {}, diff_dst});
  free.push_back({beside(diff_dst), {}, diff_dst});
  const std::vector<Candidate> candidates = candidates_for(request, std::move(free));
  using PrimitiveDesc = dnnl::convolution_backward_data::primitive_desc;
  const Create<PrimitiveDesc> create = [&](const ConvolutionProblem& described) {
    return convolution_backward_data(engine, described);
  };
  const auto complete = [&](const Found<PrimitiveDesc>& found) {
    KernelChoice choice;
    choice.inputs = {found.dst, found.weights};
    choice.outputs = {found.src};
    set_kernel(choice, engine, found.desc,
               {Argument::input(DNNL_ARG_DIFF_DST, found.desc.diff_dst_desc(), 0),
                Argument::input(DNNL_ARG_WEIGHTS, found.desc.weights_desc(), 1),
                Argument::output(DNNL_ARG_DIFF_SRC, found.desc.diff_src_desc())});
    return choice;
  };
  if (type == DataType::bf16)
    return fastest_in_bf16(operation, problem, with_weights(candidates, {}), request, tuner, engine, create, complete);
  const auto given = given_weights(request, 1);
  return fastest(operation, problem, with_weights(candidates, given), given, request, tuner, engine, create, complete);
}

std::optional<KernelChoice> convolution(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                                        const dnnl::engine& engine, const Tuner& tuner, DataType type) {
  const Problem problem{.src = request.inputs[0].shape,
                        .weights = operation.weights_shape,
                        .dst = request.inputs[1].shape,
                        .window = operation.window,
                        .groups = operation.groups,
                        .bias = operation.bias,
                        .type = type,
                        .weights_type = DataType::f32};
  const Layout& src = request.inputs[0].layout;
  const Layout& diff_dst = request.inputs[1].layout;
  const auto wish = wished(request);
  const std::vector<Candidate> candidates = with_weights(
      candidates_for(request, {{src, {}, diff_dst}, {src, {}, beside(src)}, {beside(diff_dst), {}, diff_dst}}), wish);
  using PrimitiveDesc = dnnl::convolution_backward_weights::primitive_desc;
  const Create<PrimitiveDesc> create = [&](const ConvolutionProblem& described) {
    return convolution_backward_weights(engine, described);
  };
  const auto complete = [&](const Found<PrimitiveDesc>& found) {
    KernelChoice choice;
    choice.inputs = {found.src, found.dst};
    choice.outputs = {found.weights};
    std::vector<Argument> arguments{Argument::input(DNNL_ARG_SRC, found.desc.src_desc(), 0),
                                    Argument::input(DNNL_ARG_DIFF_DST, found.desc.diff_dst_desc(), 1),
                                    Argument::output(DNNL_ARG_DIFF_WEIGHTS, found.desc.diff_weights_desc(), 0)};
    if (operation.bias) {
      choice.outputs.emplace_back(Layout::plain(1));
      arguments.push_back(Argument::output(DNNL_ARG_DIFF_BIAS, found.desc.diff_bias_desc(), 1));
    }
    set_kernel(choice, engine, found.desc, std::move(arguments));
    return choice;
  };
  if (type == DataType::bf16)
    return fastest_in_bf16(operation, problem, candidates, request, tuner, engine, create, complete);
  return fastest(operation, problem, candidates, wish, request, tuner, engine, create, complete);
}

// In the requested precision, or in f32 if the library has nothing for bf16.
template <typename Operation>
KernelChoice in_precision(const Operation& operation, const KernelRequest& request, const dnnl::engine& engine,
                          const Tuner& tuner) {
  if (request.precision == Precision::bf16) {
    auto choice = convolution(operation, request, engine, tuner, DataType::bf16);
    if (choice) return std::move(*choice);
  }
  return *convolution(operation, request, engine, tuner, DataType::f32);
}

}  // namespace

KernelChoice make(const op::Convolution& operation, const KernelRequest& request, const dnnl::engine& engine,
                  const Tuner& tuner) {
  return in_precision(operation, request, engine, tuner);
}

KernelChoice make(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner) {
  return in_precision(operation, request, engine, tuner);
}

KernelChoice make(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                  const dnnl::engine& engine, const Tuner& tuner) {
  return in_precision(operation, request, engine, tuner);
}

}  // namespace trireme::onednn
