//===- AttentionShapes.h - Operands of an Attention node --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the operands and attributes of ONNX's Attention say, with all that they
// must agree in checked.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_ATTENTIONSHAPES_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_ATTENTIONSHAPES_H

#include "NodeBinder.h"

namespace penstock::onnx {

struct Attention {
  enum Operand { Query, Key, Values, Mask, PastKey, PastValue };

  bool isCausal = false;
  /// Operands are [batch, sequence, heads * size] instead of [batch, heads,
  /// sequence, size].
  bool isFlat;
  double scale = 0, softcap = 0;
  int64_t outputMode = 0;
  /// `keys` are all keys, the `past` ones of a cache in front.
  int64_t batch, heads, groups, queries, keys, size, valueSize, past = 0;
  /// The mask's shape with all four axes.
  llvm::SmallVector<int64_t> mask;

  llvm::LogicalResult bind(NodeBinder &node);
  int64_t perGroup() const { return heads / groups; }
  llvm::SmallVector<int64_t> resultShape() const {
    if (isFlat)
      return {batch, queries, heads * valueSize};
    return {batch, heads, queries, valueSize};
  }

private:
  llvm::LogicalResult bindShapes(NodeBinder &node);
  llvm::LogicalResult bindPast(NodeBinder &node);
  llvm::LogicalResult bindMask(NodeBinder &node);
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_ATTENTIONSHAPES_H
