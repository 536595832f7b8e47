//===- NodeBinder.h - Reads operands and attributes of a node ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operator's functions see of an `onnx.node`. Every check that fails
// emits an error which names the node, the operand or the attribute, and the
// way out.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_NODEBINDER_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_NODEBINDER_H

#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/APFloat.h"

namespace penstock::onnx {

class NodeBinder {
public:
  explicit NodeBinder(NodeOp node) : node(node) {}

  NodeOp node;

  mlir::Location getLoc() { return node.getLoc(); }
  mlir::MLIRContext *getContext() { return node.getContext(); }
  int64_t getSince() { return node.getSince(); }
  mlir::InFlightDiagnostic error() { return emitNodeError(node); }

  //===--- Operands ---===//

  /// Names the operands and checks that there are at least `required` and at
  /// most as many as names, all of them ranked and static. A last name that
  /// ends in "..." may repeat.
  llvm::LogicalResult operands(llvm::ArrayRef<llvm::StringRef> names,
                               unsigned required);
  unsigned size() { return node.getInputs().size(); }
  /// Returns true if the operand is given (an optional one may be left out).
  bool has(unsigned i);
  mlir::Value operand(unsigned i) { return node.getInputs()[i]; }
  mlir::RankedTensorType type(unsigned i);
  mlir::Type elementType(unsigned i) { return type(i).getElementType(); }
  llvm::ArrayRef<int64_t> shape(unsigned i) { return type(i).getShape(); }
  int64_t rank(unsigned i) { return type(i).getRank(); }
  /// A tensor of this shape with the elements of operand `i`.
  mlir::RankedTensorType makeType(llvm::ArrayRef<int64_t> shape,
                                  unsigned i = 0) {
    return mlir::RankedTensorType::get(shape, elementType(i));
  }
  /// The operand as the specification calls it.
  std::string operandName(unsigned i);

  llvm::LogicalResult requireFloat(unsigned i);
  /// Signless integers or floats: what arithmetic is emitted for.
  llvm::LogicalResult requireArithmetic(unsigned i);
  /// The same, or unsigned integers of up to 32 bits: what elementwise bodies
  /// compute with. With `anyWidth`, those of 64 bits too.
  llvm::LogicalResult requireNumber(unsigned i, bool anyWidth = false);
  llvm::LogicalResult requireInteger(unsigned i);
  llvm::LogicalResult requireBool(unsigned i);
  llvm::LogicalResult requireSameElementType(unsigned i, unsigned j);

  /// The constant that operand `i` holds, or null.
  mlir::DenseElementsAttr constant(unsigned i);
  /// The constant integers of operand `i`; an error when it is not constant.
  llvm::LogicalResult constantIntegers(unsigned i,
                                       llvm::SmallVectorImpl<int64_t> &values);

  //===--- Attributes: `value` keeps its default when the node has none ---===//

  bool hasAttribute(llvm::StringRef name) { return !!node.getParam(name); }
  llvm::LogicalResult attribute(llvm::StringRef name, int64_t &value);
  llvm::LogicalResult attribute(llvm::StringRef name, double &value);
  llvm::LogicalResult attribute(llvm::StringRef name, bool &value);
  llvm::LogicalResult attribute(llvm::StringRef name, std::string &value);
  llvm::LogicalResult attribute(llvm::StringRef name,
                                llvm::SmallVectorImpl<int64_t> &value);
  llvm::LogicalResult attribute(llvm::StringRef name,
                                std::optional<int64_t> &value);
  /// An error: the attribute is not what the specification says.
  llvm::LogicalResult badAttribute(llvm::StringRef name,
                                   const llvm::Twine &expected);

  //===--- Axes ---===//

  /// Brings `axis` of a tensor of this rank into 0..rank-1, or 0..rank with
  /// `end`. `what` says where it comes from ("attribute 'axis'").
  llvm::LogicalResult normalizeAxis(const llvm::Twine &what, int64_t &axis,
                                    int64_t rank, bool end = false);
  /// The same for a list without duplicates, and sorts it.
  llvm::LogicalResult normalizeAxes(const llvm::Twine &what,
                                    llvm::SmallVectorImpl<int64_t> &axes,
                                    int64_t rank);
  /// Axes that became an operand at since-version `inputSince`: from the
  /// attribute "axes" before, from operand `index` since. None when neither is
  /// given.
  llvm::LogicalResult axes(int64_t inputSince, unsigned index,
                           std::optional<llvm::SmallVector<int64_t>> &values);

  //===--- Broadcasting ---===//

  /// Numpy's common shape of two shapes, named by operand in the error.
  llvm::LogicalResult broadcast(unsigned i, llvm::SmallVectorImpl<int64_t> &to);

private:
  llvm::SmallVector<std::string> names;
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_NODEBINDER_H
