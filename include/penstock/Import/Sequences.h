//===- Sequences.h - Sequences that are taken apart at once -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one use of ONNX's sequences in models that train: the parts of a split.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_IMPORT_SEQUENCES_H
#define PENSTOCK_IMPORT_SEQUENCES_H

#include "dialects/Onnx/Onnx.h"

#include "llvm/ADT/SmallVector.h"

namespace penstock::onnx {

/// If `node` takes a part from a SplitToSequence, at a constant position:
/// replaces it by nodes that slice the part out, returned in order with their
/// types to be inferred. Returns none for any other node.
llvm::FailureOr<llvm::SmallVector<NodeOp>> expandSequenceAt(NodeOp node);

} // namespace penstock::onnx

#endif // PENSTOCK_IMPORT_SEQUENCES_H
