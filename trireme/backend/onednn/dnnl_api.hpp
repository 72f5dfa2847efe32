// The only place that uses oneDNN's version-dependent API (blocked memory descriptors, primitive descriptors); the rest
// uses this and what 2.x and 3.x share. Returns an empty primitive descriptor if there is no implementation.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/graph/ops/normalization.hpp"
#include "trireme/plan/layout.hpp"

namespace trireme::onednn {

// How a memory descriptor orders its elements; blocking() returns nothing if strides and blocks cannot express it.
struct Blocking {
  dnnl::memory::dims padded_dims;
  dnnl::memory::dims strides;  // between outermost blocks
  std::vector<Layout::Block> blocks;
};
// Whether both put every element at the same place; strides of axes with a single block do not matter.
bool same_order(const Blocking& a, const Blocking& b);
std::optional<Blocking> blocking(const dnnl::memory::desc& desc);
dnnl::memory::dims dims_of(const dnnl::memory::desc& desc);
dnnl::memory::data_type type_of(const dnnl::memory::desc& desc);
// Nothing if the library has no such order.
std::optional<dnnl::memory::desc> make_desc(dnnl::memory::data_type type, const dnnl::memory::dims& dims,
                                            const Blocking& wanted);
std::int64_t bytes_of(const dnnl::memory::desc& desc);

// Attributes that let the plan provide the scratchpad; every primitive uses them.
dnnl::primitive_attr user_scratchpad();

struct ConvolutionProblem {
  dnnl::memory::desc src, weights, bias, dst;  // for backward: diff_* instead; bias may be empty
  dnnl::memory::dims strides, dilates, pad_before, pad_after;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};
dnnl::convolution_forward::primitive_desc convolution_forward(const dnnl::engine& engine,
                                                              const ConvolutionProblem& problem, bool training,
                                                              const dnnl::primitive_attr& attributes);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(const dnnl::engine& engine,
                                                                          const ConvolutionProblem& problem);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(const dnnl::engine& engine,
                                                                                const ConvolutionProblem& problem);

struct InnerProductProblem {
  dnnl::memory::desc src, weights, bias, dst;
};
dnnl::inner_product_forward::primitive_desc inner_product_forward(const dnnl::engine& engine,
                                                                  const InnerProductProblem& problem, bool training,
                                                                  const dnnl::primitive_attr& attributes);
dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(const dnnl::engine& engine,
                                                                              const InnerProductProblem& problem);
dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(const dnnl::engine& engine,
                                                                                    const InnerProductProblem& problem);

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                    const dnnl::memory::desc& b, const dnnl::memory::desc& dst);

struct PoolingProblem {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  dnnl::memory::desc src, dst;
  dnnl::memory::dims strides, kernel, pad_before, pad_after;
};
// Without a workspace: the backward pass of max pooling finds the maxima again from src and dst.
dnnl::pooling_forward::primitive_desc pooling_forward(const dnnl::engine& engine, const PoolingProblem& problem);
dnnl::pooling_backward::primitive_desc pooling_backward(const dnnl::engine& engine, const PoolingProblem& problem);

dnnl::lrn_forward::primitive_desc lrn_forward(const dnnl::engine& engine, const dnnl::memory::desc& data,
                                              const op::Lrn& lrn, bool training);
dnnl::lrn_backward::primitive_desc lrn_backward(const dnnl::engine& engine, const dnnl::memory::desc& data,
                                                const op::Lrn& lrn, const dnnl::lrn_forward::primitive_desc& forward);

struct EltwiseProblem {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  dnnl::memory::desc data;
  float alpha = 0, beta = 0;
};
dnnl::eltwise_forward::primitive_desc eltwise_forward(const dnnl::engine& engine, const EltwiseProblem& problem);
dnnl::eltwise_backward::primitive_desc eltwise_backward(const dnnl::engine& engine, const EltwiseProblem& problem);
void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha, float beta);

dnnl::softmax_forward::primitive_desc softmax_forward(const dnnl::engine& engine, const dnnl::memory::desc& data,
                                                      int axis);
dnnl::softmax_backward::primitive_desc softmax_backward(const dnnl::engine& engine, const dnnl::memory::desc& data,
                                                        int axis);

dnnl::reorder::primitive_desc reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                      const dnnl::memory::desc& to);

// Whether the CPU has instructions for bf16 products.
bool has_fast_bf16();
// Lanes of the layouts that convolutions prefer: 16 with AVX-512, else 8.
int preferred_channel_block();
std::string library_version();

}  // namespace trireme::onednn
