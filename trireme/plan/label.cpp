#include "trireme/plan/label.hpp"

namespace trireme {
namespace {

const char* pool_name(op::PoolKind kind) { return kind == op::PoolKind::max ? "max_pool" : "average_pool"; }

std::string base_name(const op::Unary& o) { return std::string(to_string(o.kind)); }
std::string base_name(const op::UnaryBackward& o) { return std::string(to_string(o.kind)) + "_backward"; }
std::string base_name(const op::Binary& o) { return std::string(to_string(o.kind)); }
std::string base_name(const op::Reduce& o) { return "reduce_" + std::string(to_string(o.kind)); }
std::string base_name(const op::Pool& o) { return pool_name(o.kind); }
std::string base_name(const op::PoolBackward& o) { return std::string(pool_name(o.kind)) + "_backward"; }
std::string base_name(const op::ApplyGradients& o) { return "apply_" + std::string(to_string(o.rule.kind)); }

template <typename Op>
std::string base_name(const Op&) {
  return Op::kName;
}

}  // namespace

std::string label_of(const Operation& operation) {
  return std::visit(
      [](const auto& o) {
        std::string label = base_name(o);
        if constexpr (requires { o.bias; }) label += o.bias ? "+bias" : "";
        if constexpr (requires { o.sum; }) label += o.sum ? "+sum" : "";
        if constexpr (requires { o.add; }) label += o.add ? "+add" : "";
        if constexpr (requires { o.activation; }) label += o.activation == op::Activation::relu ? "+relu" : "";
        return label;
      },
      operation);
}

}  // namespace trireme
