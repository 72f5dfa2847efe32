#include "trireme/graph/operation.hpp"

#include "trireme/graph/ops/checks.hpp"

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

std::string_view name_of(const Operation& operation) {
  return std::visit([](const auto& o) -> std::string_view { return std::decay_t<decltype(o)>::kName; }, operation);
}

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

// Qualified calls below: if an overload is missing, an unqualified one would convert the struct back to an Operation.
std::vector<TensorType> infer(const Operation& operation, Types inputs) {
  return std::visit([&](const auto& o) { return op::infer(o, inputs); }, operation);
}

Cost cost(const Operation& operation, Types inputs, Types outputs) {
  return std::visit(
      [&]<typename Op>(const Op& o) -> Cost {
        if constexpr (requires { op::cost(o, inputs, outputs); }) return op::cost(o, inputs, outputs);
        if (inputs.empty()) return {};  // a source is existing memory
        if constexpr (requires { Op::kFlops; })
          return {Op::kFlops * op::elements(inputs[0]), op::traffic(inputs, outputs)};
        return {0, op::traffic(inputs, outputs)};
      },
      operation);
}

std::vector<Tensor> gradient(const Operation& operation, const GradientArgs& args) {
  return std::visit(
      [&](const auto& o) -> std::vector<Tensor> {
        if constexpr (requires { op::gradient(o, args); }) {
          return op::gradient(o, args);
        } else if (is_backward(operation)) {
          bad_input("it is itself part of a gradient; second derivatives are not supported");
        } else {
          bad_input("this operation has no gradient");
        }
      },
      operation);
}

bool is_backward(const Operation& operation) {
  return std::visit(
      [](const auto& o) {
        return requires { o.kBackward; };
      },
      operation);
}

bool is_update(const Operation& operation) {
  return std::holds_alternative<op::ApplyGradients>(operation) ||
         std::holds_alternative<op::MovingAverage>(operation) || std::holds_alternative<op::Assign>(operation) ||
         std::holds_alternative<op::UpdateLossScale>(operation);
}

std::vector<int> written_inputs(const Operation& operation, int input_count) {
  if (!is_update(operation)) return {};
  if (std::holds_alternative<op::UpdateLossScale>(operation)) return {0, 1, 2};
  std::vector<int> variables;
  for (int i = std::holds_alternative<op::ApplyGradients>(operation) ? 1 : 0; i < input_count; i += 2)
    variables.push_back(i);
  return variables;
}

}  // namespace trireme
