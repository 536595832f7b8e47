//===- DiscardableAttributes.h - Facts of an imported model -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attributes of the dialect, by what they are on. The dialect
// verifies that they are there, and have that type; the dialect describes them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_ONNX_DISCARDABLEATTRIBUTES_H
#define PENSTOCK_DIALECTS_ONNX_DISCARDABLEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace penstock::onnx {

// On the module, at every level.

/// ["name"]: float initializers that became constants. They do not train.
inline constexpr llvm::StringLiteral kConstantInitializersAttr =
    "onnx.constant_initializers";
/// ["name"]: initializers that would train, but that only other outputs of the
/// model read than the one that enters the loss.
inline constexpr llvm::StringLiteral kUnreachedInitializersAttr =
    "onnx.unreached_initializers";
/// ["name"]: inputs of the model that the program does not need.
inline constexpr llvm::StringLiteral kUnusedInputsAttr = "onnx.unused_inputs";

/// {node = "other"}, until the model is cut: a node that only gave its operand
/// another shape, and the node that made that.
inline constexpr llvm::StringLiteral kPassedOnAttr = "onnx.passed_on";

// At level `onnx`.

/// "name", on a result of a function: the ONNX name of the output.
inline constexpr llvm::StringLiteral kOutputNameAttr = "onnx.output";
/// n : i64, on a function: inputs with a leading 1 were given this batch size
/// instead.
inline constexpr llvm::StringLiteral kReboundBatchAttr = "onnx.rebound_batch";
/// On a node or loop of a branch of an If: whether it runs is known once the
/// condition is.
inline constexpr llvm::StringLiteral kBranchAttr = "onnx.branch";

} // namespace penstock::onnx

#endif // PENSTOCK_DIALECTS_ONNX_DISCARDABLEATTRIBUTES_H
