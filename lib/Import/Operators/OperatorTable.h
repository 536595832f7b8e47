//===- OperatorTable.h - Where operators enter themselves -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each file of operators has a function here that adds its entries.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_OPERATORTABLE_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_OPERATORTABLE_H

#include "ConstantTensor.h"
#include "Emitter.h"
#include "NodeBinder.h"

#include <initializer_list>
#include <vector>

namespace penstock::onnx {

using Types = NodeOutputs<mlir::Type>;
using Values = NodeOutputs<mlir::Value>;
using Constants = NodeOutputs<mlir::DenseElementsAttr>;

struct OperatorTable {
  std::vector<Operator> entries;

  /// Adds `type` at each since-version of the default domain: `sinces` are all
  /// of them from the one that opset 7 selects. `fold` and `lower` may be null.
  void add(llvm::StringRef type, std::initializer_list<int64_t> sinces,
           Operator::InferFn infer, Operator::FoldFn fold,
           Operator::LowerFn lower,
           Operator::Derivative derivative = Operator::Differentiable) {
    for (int64_t since : sinces)
      entries.push_back({"", type, since, infer, fold, lower, derivative});
  }

  /// Says what operands of `type` are, in all its versions; see Operator.
  void markOperands(llvm::StringRef type, Operator::Operands Operator::*role,
                    std::initializer_list<unsigned> operands) {
    for (Operator &entry : entries)
      if (entry.domain.empty() && entry.type == type)
        for (unsigned i : operands)
          (entry.*role).bits |= 1u << i;
  }

  /// Sets a field of `type`, in all its versions.
  template <typename T>
  void set(llvm::StringRef type, T Operator::*field, T value) {
    for (Operator &entry : entries)
      if (entry.type == type)
        entry.*field = value;
  }

  /// Adds a fused form of ONNX Runtime, all of which have version 1.
  void addMicrosoft(llvm::StringRef type, Operator::InferFn infer,
                    Operator::LowerFn lower) {
    entries.push_back({"com.microsoft", type, 1, infer, nullptr, lower,
                       Operator::Differentiable});
  }
};

/// Adds the operators of a plug-in, before a model is read.
void addOperators(void (*add)(OperatorTable &table));

#define PENSTOCK_OPERATORS(family) void add##family(OperatorTable &table);
#include "Operators.def"

//===--- Shared by several files ---===//

/// The type of a result of the node, once it is known.
inline mlir::RankedTensorType resultType(NodeBinder &node, unsigned i = 0) {
  return mlir::cast<mlir::RankedTensorType>(
      node.node.getOutputs()[i].getType());
}

/// Implements bound<>.
template <auto function, auto... arguments> struct Bound;
template <typename Result, typename Params, typename... Rest,
          Result (*function)(Params &, NodeBinder &, Rest...),
          auto... arguments>
struct Bound<function, arguments...> {
  static Result call(NodeBinder &node, Rest... rest) {
    Params params;
    if (llvm::failed(params.bind(node, arguments...)))
      return llvm::failure();
    return function(params, node, rest...);
  }
};

/// Makes a function of the table from one that takes a description of the node
/// first: the description is bound to the node, which checks operands and
/// attributes, before `function` is called with it.
template <auto function, auto... arguments>
constexpr auto *bound = Bound<function, arguments...>::call;

/// Infers that the output has the type of the first operand; see bound<>.
template <typename Params> Types inferSame(Params &, NodeBinder &node) {
  return node.type(0);
}

/// Infers that the output has the shape that the description computed, and the
/// element type of the first operand; see bound<>.
template <typename Params> Types inferShape(Params &params, NodeBinder &node) {
  return mlir::RankedTensorType::get(params.result, node.elementType(0));
}

/// One operand, the result has its type.
Types inferFloatUnary(NodeBinder &node);
Types inferArithmeticUnary(NodeBinder &node);

/// x times the normal distribution's cumulative function, or a formula near it.
mlir::Value emitGelu(Emitter &emitter, mlir::Value x, bool approximate);

/// Two operands of one element type, which broadcast; the result has that type.
Types inferTwo(NodeBinder &node, llvm::ArrayRef<llvm::StringRef> names);

/// The constant operands of a node whose output has all their elements, each
/// broadcast to its shape; none where one is not constant.
llvm::SmallVector<ConstantTensor> broadcastConstants(NodeBinder &node);

/// Lowers a node to its constant, which it has for every operand.
template <auto fold> Values lowerFolded(NodeBinder &node, Emitter &emitter) {
  Constants constants = fold(node);
  if (llvm::failed(constants))
    return llvm::failure();
  llvm::SmallVector<mlir::Value> values;
  for (mlir::DenseElementsAttr constant : *constants)
    values.push_back(emitter.constant(constant));
  return values;
}

/// Lowers a node of one operand to one linalg.generic.
template <mlir::Value (*scalar)(NodeBinder &, Emitter &, mlir::Value)>
Values lowerUnary(NodeBinder &node, Emitter &emitter) {
  return emitter.elementwise(
      resultType(node), node.operand(0),
      [&](Emitter &inside, llvm::ArrayRef<mlir::Value> scalars) {
        return scalar(node, inside, scalars[0]);
      });
}

/// Lowers a node of two operands to one linalg.generic.
template <mlir::Value (*scalar)(NodeBinder &, Emitter &, mlir::Value,
                                mlir::Value)>
Values lowerTwo(NodeBinder &node, Emitter &emitter) {
  return emitter.elementwise(
      resultType(node), {node.operand(0), node.operand(1)},
      [&](Emitter &inside, llvm::ArrayRef<mlir::Value> scalars) {
        return scalar(node, inside, scalars[0], scalars[1]);
      });
}

/// A scalar function that is one op.
template <typename ScalarOp>
mlir::Value scalarOp(NodeBinder &, Emitter &inside, mlir::Value a,
                     mlir::Value b) {
  return inside.make<ScalarOp>(a, b);
}

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_OPERATORTABLE_H
