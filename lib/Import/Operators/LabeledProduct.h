//===- LabeledProduct.h - Products with axes by name ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Einsum and the matrix products of com.microsoft are made of: an axis is
// a label, equal labels are the same dimension, and what the result does not
// have is summed over.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_LABELEDPRODUCT_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_LABELEDPRODUCT_H

#include "Emitter.h"

namespace penstock::onnx {

struct Labeled {
  mlir::Value value;
  /// One per axis.
  llvm::SmallVector<int64_t> labels;

  bool has(int64_t label) const { return llvm::is_contained(labels, label); }
  int64_t sizeOf(int64_t label) const;
};

/// The elements where axes of the same label have the same index.
Labeled takeDiagonals(Emitter &emitter, Labeled operand);

/// `operand` summed over the labels that `kept` does not have.
Labeled sumOthers(Emitter &emitter, Labeled operand,
                  llvm::ArrayRef<int64_t> kept);

/// The axes in this order; the labels are the same.
Labeled reorder(Emitter &emitter, Labeled operand,
                llvm::ArrayRef<int64_t> labels);

/// The product with the axes `result`, each of which one operand has. An axis
/// of size 1 is repeated where the other operand's is larger. No operand has a
/// label twice.
Labeled multiply(Emitter &emitter, Labeled a, Labeled b,
                 llvm::ArrayRef<int64_t> result);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_LABELEDPRODUCT_H
