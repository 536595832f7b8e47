//===- Sequences.h - Nodes over sequences of tensors ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's exporter writes a split as SplitToSequence and SequenceAt. A
// sequence is never a value here: its readers become nodes over tensors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_SEQUENCES_H
#define PENSTOCK_PASSES_FRONTEND_SEQUENCES_H

#include "dialects/Onnx/Onnx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace penstock {

/// Gives a node its types, and the values that stand for its results: its own,
/// or constants.
using ResolveNodeFn =
    llvm::function_ref<llvm::FailureOr<llvm::SmallVector<mlir::Value>>(
        onnx::NodeOp)>;

/// A node of one result that takes part in replacing another, resolved; null
/// after an error.
mlir::Value emitResolved(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::StringRef type, mlir::ValueRange operands,
                         mlir::DictionaryAttr params, ResolveNodeFn resolve);

/// A constant list of integers.
mlir::Value emitIntegers(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::ArrayRef<int64_t> values);

/// SplitToSequence, ConcatFromSequence, or one of Sequence*.
bool isSequenceNode(onnx::NodeOp node);

/// Replaces a node that reads a sequence by nodes over tensors, each of which
/// is given to `resolve` as soon as it stands. A node that makes a sequence is
/// checked, and dead when its readers have gone. The operands before `node`
/// have their types.
llvm::LogicalResult resolveSequenceNode(onnx::NodeOp node,
                                        ResolveNodeFn resolve);

/// An error for a sequence that is left when dead nodes have gone.
llvm::LogicalResult checkSequencesRead(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_FRONTEND_SEQUENCES_H
