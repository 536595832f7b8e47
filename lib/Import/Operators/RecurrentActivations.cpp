//===- RecurrentActivations.cpp - Functions of recurrent cells ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scalar functions that RNN, GRU and LSTM may name, and their parameters.
//===----------------------------------------------------------------------===//

#include "Recurrent.h"

using namespace mlir;
using namespace penstock::onnx;

bool Activation::setDefaults() {
  // As the specification has them.
  struct Entry {
    StringRef name;
    double alpha, beta;
  };
  static const Entry entries[] = {
      {"Relu", 0, 0},         {"Tanh", 0, 0},
      {"Sigmoid", 0, 0},      {"Affine", 1, 0},
      {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
      {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
      {"Elu", 1, 0},          {"Softsign", 0, 0},
      {"Softplus", 0, 0}};
  for (const Entry &entry : entries)
    if (entry.name.equals_insensitive(name)) {
      name = entry.name.str();
      alpha = entry.alpha;
      beta = entry.beta;
      return true;
    }
  return false;
}

Value Activation::apply(Emitter &e, Value x) const {
  Type type = x.getType();
  auto number = [&](double value) { return e.scalar(type, value); };
  Value zero = number(0), one = number(1);
  if (name == "Relu")
    return e.max(x, zero);
  if (name == "Tanh")
    return e.make<math::TanhOp>(x);
  if (name == "Sigmoid")
    return e.div(one, e.add(one, e.make<math::ExpOp>(e.neg(x))));
  if (name == "Affine")
    return e.add(e.mul(number(alpha), x), number(beta));
  if (name == "LeakyRelu")
    return e.select(e.less(zero, x), x, e.mul(number(alpha), x));
  if (name == "ThresholdedRelu")
    return e.select(e.less(number(alpha), x), x, zero);
  if (name == "ScaledTanh") {
    Value inner = e.make<math::TanhOp>(e.mul(number(beta), x));
    return e.mul(number(alpha), inner);
  }
  if (name == "HardSigmoid")
    return e.max(zero,
                 e.min(one, e.add(e.mul(number(alpha), x), number(beta))));
  if (name == "Elu") {
    // Finite where it is not chosen, so that the derivative is a number.
    Value power = e.make<math::ExpOp>(e.min(x, zero));
    return e.select(e.less(x, zero), e.mul(number(alpha), e.sub(power, one)),
                    x);
  }
  if (name == "Softsign")
    return e.div(x, e.add(one, e.make<math::AbsFOp>(x)));
  // Softplus: x itself from where it rounds to it, the limit included.
  Value limit = number(20);
  Value power = e.make<math::ExpOp>(e.min(x, limit));
  return e.select(e.less(x, limit), e.make<math::Log1pOp>(power), x);
}

LogicalResult Recurrence::bindActivations(NodeBinder &node) {
  SmallVector<StringRef> defaults = {"Tanh"};
  if (cell == Cell::Gru)
    defaults = {"Sigmoid", "Tanh"};
  if (cell == Cell::Lstm)
    defaults = {"Sigmoid", "Tanh", "Tanh"};
  SmallVector<StringRef> names;
  for (int64_t d = 0; d < directions; ++d)
    llvm::append_range(names, defaults);
  if (Attribute given = node.node.getParam("activations")) {
    auto list = dyn_cast<ArrayAttr>(given);
    if (!list || list.size() != names.size() ||
        !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return node.badAttribute("activations", Twine(names.size()) + " names");
    names.clear();
    for (auto name : list.getAsRange<StringAttr>())
      names.push_back(name.getValue());
  }
  // Parameters are listed for the functions that have some, in order.
  SmallVector<float> alphas, betas;
  for (auto [name, numbers] : {std::pair("activation_alpha", &alphas),
                               std::pair("activation_beta", &betas)})
    if (auto list =
            dyn_cast_or_null<DenseF32ArrayAttr>(node.node.getParam(name)))
      llvm::append_range(*numbers, list.asArrayRef());
  size_t alpha = 0, beta = 0;
  for (StringRef name : names) {
    Activation activation{name.str()};
    if (!activation.setDefaults())
      return node.badAttribute("activations",
                               "of the functions that ONNX lists");
    StringRef known = activation.name;
    bool hasBeta =
        known == "Affine" || known == "ScaledTanh" || known == "HardSigmoid";
    bool hasAlpha = hasBeta || known == "LeakyRelu" ||
                    known == "ThresholdedRelu" || known == "Elu";
    if (hasAlpha && alpha < alphas.size())
      activation.alpha = alphas[alpha++];
    if (hasBeta && beta < betas.size())
      activation.beta = betas[beta++];
    activations.push_back(activation);
  }
  return success();
}
