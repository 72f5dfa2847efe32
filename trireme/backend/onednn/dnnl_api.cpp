#include "trireme/backend/onednn/dnnl_api.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::onednn {

using dnnl::algorithm;
using dnnl::engine;
using dnnl::memory;
using dnnl::primitive_attr;
using dnnl::prop_kind;

namespace {

// Functions below return an empty descriptor instead of throwing if no implementation fits.
constexpr bool kAllowEmpty = true;

prop_kind forward_kind(bool training) { return training ? prop_kind::forward_training : prop_kind::forward_inference; }

// The same tensor in any order, for the forward hints that backward descriptors need.
memory::desc any_order(const memory::desc& desc, memory::data_type type) {
  const memory::dims dims = dims_of(desc);
  return dims.empty() ? desc : memory::desc(dims, type, memory::format_tag::any);
}
memory::desc any_order(const memory::desc& desc) { return any_order(desc, type_of(desc)); }

// The forward problem for a backward hint: one that always exists, so all in one type.
template <typename Problem>
Problem any_order(Problem problem) {
  const memory::data_type type = type_of(problem.src);
  for (memory::desc* desc : {&problem.src, &problem.weights, &problem.dst}) *desc = any_order(*desc, type);
  if constexpr (requires { problem.algorithm; }) problem.algorithm = algorithm::convolution_direct;
  return problem;
}

// A primitive's descriptor for a problem, for backward with that of the forward operation.
template <typename Primitive, typename... Problem>
auto describe(const engine& engine, const primitive_attr& attributes, const Problem&... problem) {
  if constexpr (DNNL_VERSION_MAJOR >= 3) {
    return typename Primitive::primitive_desc(engine, problem..., attributes, kAllowEmpty);
  } else {
    return typename Primitive::primitive_desc(typename Primitive::desc(problem...), attributes, engine, kAllowEmpty);
  }
}
template <typename Primitive, typename Forward, typename... Problem>
auto describe_backward(const engine& engine, const Forward& forward, const Problem&... problem) {
  const primitive_attr attributes = user_scratchpad();
  if constexpr (DNNL_VERSION_MAJOR >= 3) {
    return typename Primitive::primitive_desc(engine, problem..., forward, attributes, kAllowEmpty);
  } else {
    return typename Primitive::primitive_desc(typename Primitive::desc(problem...), attributes, engine, forward,
                                              kAllowEmpty);
  }
}

bool has_isa(dnnl::cpu_isa wanted) {
  const int bits = static_cast<int>(wanted);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool same_order(const Blocking& a, const Blocking& b) {
  if (a.padded_dims != b.padded_dims || a.blocks != b.blocks) return false;
  std::vector<std::int64_t> sizes(a.padded_dims.size(), 1);
  for (const auto& block : a.blocks) sizes[block.axis] *= block.size;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (a.padded_dims[axis] > sizes[axis] && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

primitive_attr user_scratchpad() {
  primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::int64_t bytes_of(const memory::desc& desc) { return desc.get_size(); }

dnnl::reorder::primitive_desc reorder(const engine& engine, const memory::desc& from, const memory::desc& to) {
  return {engine, from, engine, to, user_scratchpad(), kAllowEmpty};
}

bool has_fast_bf16() { return has_isa(dnnl::cpu_isa::avx512_core_bf16); }

int preferred_channel_block() { return has_isa(dnnl::cpu_isa::avx512_core) ? 16 : 8; }

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

#if DNNL_VERSION_MAJOR >= 3

std::optional<Blocking> blocking(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return std::nullopt;
  Blocking result{desc.get_padded_dims(), desc.get_strides(), {}};
  const memory::dims sizes = desc.get_inner_blks(), axes = desc.get_inner_idxs();
  for (int i = 0; i < desc.get_inner_nblks(); ++i) result.blocks.push_back({static_cast<int>(axes[i]), sizes[i]});
  return result;
}

memory::dims dims_of(const memory::desc& desc) { return desc.get_dims(); }

memory::data_type type_of(const memory::desc& desc) { return desc.get_data_type(); }

// In 3.x, blocked orders exist only as named formats: finds the one with this order.
std::optional<memory::desc> make_desc(memory::data_type type, const memory::dims& dims, const Blocking& wanted) {
  if (wanted.blocks.empty()) return memory::desc(dims, type, wanted.strides);
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    memory::desc desc(dims, type, static_cast<memory::format_tag>(tag), kAllowEmpty);
    if (desc.get(kAllowEmpty) == nullptr) continue;
    const auto found = blocking(desc);
    if (found && same_order(*found, wanted)) return desc;
  }
  return std::nullopt;
}

dnnl::pooling_forward::primitive_desc pooling_forward(const engine& engine, const PoolingProblem& p) {
  const memory::dims no_dilation(p.kernel.size(), 0);
  return describe<dnnl::pooling_forward>(engine, user_scratchpad(), prop_kind::forward_inference, p.algorithm, p.src,
                                         p.dst, p.strides, p.kernel, no_dilation, p.pad_before, p.pad_after);
}

dnnl::pooling_backward::primitive_desc pooling_backward(const engine& engine, const PoolingProblem& p) {
  const memory::dims no_dilation(p.kernel.size(), 0);
  const dnnl::pooling_forward::primitive_desc forward(engine, prop_kind::forward_training, p.algorithm, p.src,
                                                      any_order(p.dst), p.strides, p.kernel, no_dilation, p.pad_before,
                                                      p.pad_after);
  return describe_backward<dnnl::pooling_backward>(engine, forward, p.algorithm, p.src, p.dst, p.strides, p.kernel,
                                                   no_dilation, p.pad_before, p.pad_after);
}

dnnl::lrn_forward::primitive_desc lrn_forward(const engine& engine, const memory::desc& data, const op::Lrn& lrn,
                                              bool training) {
  return describe<dnnl::lrn_forward>(engine, user_scratchpad(), forward_kind(training), algorithm::lrn_across_channels,
                                     data, data, lrn.size, lrn.alpha, lrn.beta, lrn.k);
}

dnnl::lrn_backward::primitive_desc lrn_backward(const engine& engine, const memory::desc& data, const op::Lrn& lrn,
                                                const dnnl::lrn_forward::primitive_desc& forward) {
  return describe_backward<dnnl::lrn_backward>(engine, forward, algorithm::lrn_across_channels, data, data, data,
                                               lrn.size, lrn.alpha, lrn.beta, lrn.k);
}

dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& engine, const EltwiseProblem& p) {
  return describe<dnnl::eltwise_forward>(engine, user_scratchpad(), prop_kind::forward_training, p.algorithm, p.data,
                                         p.data, p.alpha, p.beta);
}

dnnl::eltwise_backward::primitive_desc eltwise_backward(const engine& engine, const EltwiseProblem& p) {
  return describe_backward<dnnl::eltwise_backward>(engine, eltwise_forward(engine, p), p.algorithm, p.data, p.data,
                                                   p.data, p.alpha, p.beta);
}

void append_eltwise(dnnl::post_ops& operations, algorithm kind, float alpha, float beta) {
  operations.append_eltwise(kind, alpha, beta);
}

dnnl::softmax_forward::primitive_desc softmax_forward(const engine& engine, const memory::desc& data, int axis) {
  return describe<dnnl::softmax_forward>(engine, user_scratchpad(), prop_kind::forward_training,
                                         algorithm::softmax_accurate, data, data, axis);
}

dnnl::softmax_backward::primitive_desc softmax_backward(const engine& engine, const memory::desc& data, int axis) {
  return describe_backward<dnnl::softmax_backward>(engine, softmax_forward(engine, data, axis),
                                                   algorithm::softmax_accurate, data, data, data, axis);
}

#else

std::optional<Blocking> blocking(const memory::desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.offset0 != 0 || data.extra.flags != dnnl_memory_extra_flag_none)
    return std::nullopt;
  const dnnl_blocking_desc_t& blocked = data.format_desc.blocking;
  Blocking result;
  result.padded_dims.assign(data.padded_dims, data.padded_dims + data.ndims);
  result.strides.assign(blocked.strides, blocked.strides + data.ndims);
  for (int i = 0; i < blocked.inner_nblks; ++i) {
    result.blocks.push_back({static_cast<int>(blocked.inner_idxs[i]), blocked.inner_blks[i]});
  }
  return result;
}

memory::dims dims_of(const memory::desc& desc) { return desc.dims(); }

memory::data_type type_of(const memory::desc& desc) { return desc.data_type(); }

std::optional<memory::desc> make_desc(memory::data_type type, const memory::dims& dims, const Blocking& wanted) {
  // Set after creation with plain strides: the library checks strides against extents, ignoring blocks.
  memory::dims plain(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) plain[i - 1] = plain[i] * dims[i];
  memory::desc desc(dims, type, plain);
  dnnl_blocking_desc_t& blocked = desc.data.format_desc.blocking;
  std::copy(wanted.strides.begin(), wanted.strides.end(), blocked.strides);
  std::copy(wanted.padded_dims.begin(), wanted.padded_dims.end(), desc.data.padded_dims);
  blocked.inner_nblks = static_cast<int>(wanted.blocks.size());
  for (std::size_t i = 0; i < wanted.blocks.size(); ++i) {
    blocked.inner_idxs[i] = wanted.blocks[i].axis;
    blocked.inner_blks[i] = wanted.blocks[i].size;
  }
  return desc;
}

dnnl::pooling_forward::primitive_desc pooling_forward(const engine& engine, const PoolingProblem& p) {
  return describe<dnnl::pooling_forward>(engine, user_scratchpad(), prop_kind::forward_inference, p.algorithm, p.src,
                                         p.dst, p.strides, p.kernel, p.pad_before, p.pad_after);
}

dnnl::pooling_backward::primitive_desc pooling_backward(const engine& engine, const PoolingProblem& p) {
  const dnnl::pooling_forward::desc forward(prop_kind::forward_training, p.algorithm, p.src, any_order(p.dst),
                                            p.strides, p.kernel, p.pad_before, p.pad_after);
  return describe_backward<dnnl::pooling_backward>(engine, dnnl::pooling_forward::primitive_desc(forward, engine),
                                                   p.algorithm, p.src, p.dst, p.strides, p.kernel, p.pad_before,
                                                   p.pad_after);
}

dnnl::lrn_forward::primitive_desc lrn_forward(const engine& engine, const memory::desc& data, const op::Lrn& lrn,
                                              bool training) {
  return describe<dnnl::lrn_forward>(engine, user_scratchpad(), forward_kind(training), algorithm::lrn_across_channels,
                                     data, lrn.size, lrn.alpha, lrn.beta, lrn.k);
}

dnnl::lrn_backward::primitive_desc lrn_backward(const engine& engine, const memory::desc& data, const op::Lrn& lrn,
                                                const dnnl::lrn_forward::primitive_desc& forward) {
  return describe_backward<dnnl::lrn_backward>(engine, forward, algorithm::lrn_across_channels, data, data, lrn.size,
                                               lrn.alpha, lrn.beta, lrn.k);
}

dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& engine, const EltwiseProblem& p) {
  return describe<dnnl::eltwise_forward>(engine, user_scratchpad(), prop_kind::forward_training, p.algorithm, p.data,
                                         p.alpha, p.beta);
}

dnnl::eltwise_backward::primitive_desc eltwise_backward(const engine& engine, const EltwiseProblem& p) {
  return describe_backward<dnnl::eltwise_backward>(engine, eltwise_forward(engine, p), p.algorithm, p.data, p.data,
                                                   p.alpha, p.beta);
}

void append_eltwise(dnnl::post_ops& operations, algorithm kind, float alpha, float beta) {
  operations.append_eltwise(1.0f, kind, alpha, beta);
}

dnnl::softmax_forward::primitive_desc softmax_forward(const engine& engine, const memory::desc& data, int axis) {
  return describe<dnnl::softmax_forward>(engine, user_scratchpad(), prop_kind::forward_training, data, axis);
}

dnnl::softmax_backward::primitive_desc softmax_backward(const engine& engine, const memory::desc& data, int axis) {
  return describe_backward<dnnl::softmax_backward>(engine, softmax_forward(engine, data, axis), data, data, axis);
}

#endif

dnnl::convolution_forward::primitive_desc convolution_forward(const engine& engine, const ConvolutionProblem& p,
                                                              bool training, const primitive_attr& attributes) {
  return describe<dnnl::convolution_forward>(engine, attributes, forward_kind(training), p.algorithm, p.src, p.weights,
                                             p.bias, p.dst, p.strides, p.dilates, p.pad_before, p.pad_after);
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(const engine& engine,
                                                                          const ConvolutionProblem& p) {
  return describe_backward<dnnl::convolution_backward_data>(engine, convolution_forward(engine, any_order(p), true, {}),
                                                            p.algorithm, p.src, p.weights, p.dst, p.strides, p.dilates,
                                                            p.pad_before, p.pad_after);
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(const engine& engine,
                                                                                const ConvolutionProblem& p) {
  return describe_backward<dnnl::convolution_backward_weights>(
      engine, convolution_forward(engine, any_order(p), true, {}), p.algorithm, p.src, p.weights, p.bias, p.dst,
      p.strides, p.dilates, p.pad_before, p.pad_after);
}

dnnl::inner_product_forward::primitive_desc inner_product_forward(const engine& engine, const InnerProductProblem& p,
                                                                  bool training, const primitive_attr& attributes) {
  return describe<dnnl::inner_product_forward>(engine, attributes, forward_kind(training), p.src, p.weights, p.bias,
                                               p.dst);
}

dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(const engine& engine,
                                                                              const InnerProductProblem& p) {
  return describe_backward<dnnl::inner_product_backward_data>(
      engine, inner_product_forward(engine, any_order(p), true, {}), p.src, p.weights, p.dst);
}

dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(const engine& engine,
                                                                                    const InnerProductProblem& p) {
  return describe_backward<dnnl::inner_product_backward_weights>(
      engine, inner_product_forward(engine, any_order(p), true, {}), p.src, p.weights, p.bias, p.dst);
}

dnnl::matmul::primitive_desc matmul(const engine& engine, const memory::desc& a, const memory::desc& b,
                                    const memory::desc& dst) {
  return describe<dnnl::matmul>(engine, user_scratchpad(), a, b, dst);
}

}  // namespace trireme::onednn
