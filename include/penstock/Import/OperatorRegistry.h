//===- OperatorRegistry.h - What ONNX operators mean ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table, keyed (domain, op_type, since-version): how a node's result types
// follow from its operands, how it folds when they are constant, and how it is
// lowered to linalg. The next operator is one entry and one short function.
//
// How a model becomes `onnx.node` ops, so that the table can read them:
// * ONNX types: float f32, double f64, float16 f16, bfloat16 bf16, bool i1,
//   int8..int64 i8..i64 (signless), uint8..uint64 ui8..ui64.
// * ONNX attributes: INT i64 IntegerAttr, FLOAT f32 FloatAttr, STRING
//   StringAttr, INTS DenseI64ArrayAttr, FLOATS DenseF32ArrayAttr, STRINGS
//   ArrayAttr of StringAttr, TENSOR DenseElementsAttr.
// * A constant is an `arith.constant`, or an `onnx.node "Constant"`.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_IMPORT_OPERATORREGISTRY_H
#define PENSTOCK_IMPORT_OPERATORREGISTRY_H

#include "dialects/Onnx/Onnx.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>

namespace penstock::onnx {

class Emitter;
class NodeBinder;

/// A T for each output of a node, or a failure behind an error at the node.
/// Functions of the table return it: one T, several, or the error itself.
template <typename T>
class NodeOutputs : public llvm::FailureOr<llvm::SmallVector<T>> {
  using Base = llvm::FailureOr<llvm::SmallVector<T>>;

public:
  NodeOutputs() : Base(llvm::SmallVector<T>()) {}
  template <typename One>
    requires std::convertible_to<One, T>
  NodeOutputs(One &&one)
      : Base(llvm::SmallVector<T>{T(std::forward<One>(one))}) {}
  NodeOutputs(std::initializer_list<T> all) : Base(llvm::SmallVector<T>(all)) {}
  NodeOutputs(llvm::SmallVector<T> all) : Base(std::move(all)) {}
  NodeOutputs(llvm::LogicalResult failure) : Base(failure) {}
  NodeOutputs(const mlir::InFlightDiagnostic &) : Base(llvm::failure()) {}
};

/// One entry of the table. The functions emit an error at the node when they
/// fail.
struct Operator {
  using InferFn = NodeOutputs<mlir::Type> (*)(NodeBinder &);
  /// No attributes: this node cannot be folded.
  using FoldFn = NodeOutputs<mlir::DenseElementsAttr> (*)(NodeBinder &);
  using LowerFn = NodeOutputs<mlir::Value> (*)(NodeBinder &, Emitter &);

  /// Which integers an operand may hold: from `low` to before `high`, and
  /// `ignored`.
  struct Range {
    int64_t low, high;
    std::optional<int64_t> ignored = std::nullopt;
  };
  /// The range of operand `i` of a node whose types are known, or nothing where
  /// it may hold any.
  using RangeFn = std::optional<Range> (*)(NodeBinder &, unsigned i);

  /// States if gradients flow through the node.
  enum Derivative { Differentiable, Inactive };

  /// The relation of the first result's elements to those of the first operand:
  /// nothing in particular, all of its elements and no others, in some order
  /// and number and as some type, or the operand itself.
  enum Elements { Computed, Moved, Same };

  llvm::StringRef domain;
  llvm::StringRef type;
  int64_t since;
  InferFn infer;
  /// Null: never folded.
  FoldFn fold;
  /// Null: the operator is known only where its operands are constant.
  LowerFn lower;
  Derivative derivative;
  /// Some of the operands: bit i is operand i.
  struct Operands {
    uint32_t bits = 0;
    bool contains(unsigned i) const { return i < 32 && (bits >> i & 1); }
  };
  /// Those that hold running statistics, which the node itself moves, and those
  /// that say how large the result is. Neither are weights.
  Operands statistics = {}, extents = {};
  /// Those of which only the type or shape matters, and those of which the node
  /// reads a part, or makes a copy with another part.
  Operands shapes = {}, parts = {};
  Elements elements = Computed;
  /// Null: all operands may hold any integers.
  RangeFn range = nullptr;
};

/// The domain as the table has it: "ai.onnx" is "".
inline llvm::StringRef normalizeDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

/// The whole table, ordered by (domain, type, since).
llvm::ArrayRef<Operator> getOperators();

/// The entry that a model which imports `domain` at version `opset` means: the
/// one with the largest since-version that is at most `opset`. Null when there
/// is none. The domains "" and "ai.onnx" are the same.
const Operator *lookupOperator(llvm::StringRef domain, llvm::StringRef type,
                               int64_t opset);

/// The entry of exactly this node.
const Operator *lookupOperator(NodeOp node);

/// The oldest and newest opset of the default domain that the table serves.
constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 23;

/// The element type of an ONNX TensorProto.DataType; null when we have none.
mlir::Type getElementType(mlir::MLIRContext *context, int64_t dataType);

/// The name of a node: that of its location, or the type of the operator and
/// the node's position in its function ("Gemm#3") when it has none.
std::string getNodeName(NodeOp node);

/// An error at the node, which begins "node 'fc1' (Gemm, since-version 13): ".
mlir::InFlightDiagnostic emitNodeError(NodeOp node);

/// The result types that follow from the node's operands, which must be ranked
/// and static. Fails with an error at the node.
llvm::FailureOr<llvm::SmallVector<mlir::Type>> computeResultTypes(NodeOp node);

/// Computes the node's result types and sets them.
llvm::LogicalResult inferResultTypes(NodeOp node);

/// Which integers operand `i` of the node may hold; nothing where all.
std::optional<Operator::Range> getOperandRange(NodeOp node, unsigned i);

/// Folds the node if it can be: `values` has a value per result afterwards, or
/// is empty. Nodes with results of more than `limit` elements are left alone.
llvm::LogicalResult
foldNode(NodeOp node, llvm::SmallVectorImpl<mlir::DenseElementsAttr> &values,
         int64_t limit = 1 << 16);

/// Emits what computes the node at `builder`: `values` replace its results.
/// A node that folds becomes constants. The result types must be those that
/// follow from the operands.
llvm::LogicalResult lowerNode(NodeOp node, mlir::OpBuilder &builder,
                              llvm::SmallVectorImpl<mlir::Value> &values);

/// The constant that a value holds, or null.
mlir::DenseElementsAttr getConstant(mlir::Value value);

/// Collects nodes that cannot be imported, to report all of them at once.
class UnsupportedNodes {
public:
  /// Takes the node if no entry serves it.
  bool addIfUnknown(NodeOp node);
  void add(NodeOp node);
  bool empty() const { return nodes.empty(); }
  /// One error at `loc` which names the types with their counts, since-versions
  /// and node names.
  llvm::LogicalResult report(mlir::Location loc) const;

private:
  llvm::SmallVector<std::pair<std::string, llvm::SmallVector<std::string>>>
      nodes;
};

} // namespace penstock::onnx

#endif // PENSTOCK_IMPORT_OPERATORREGISTRY_H
