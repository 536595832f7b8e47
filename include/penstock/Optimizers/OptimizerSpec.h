//===- OptimizerSpec.h - The text of --optimizer ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `sgd:lr=0.1,momentum=0.9,nesterov` as a checked record. The driver and the
// pass that emits updates parse with the same function.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H
#define PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace penstock {

enum class OptimizerKind { SGD, Adam, AdamW };

/// An optimizer with its numbers, as PyTorch defines them.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::SGD;
  double learningRate = 0.01;
  double weightDecay = 0;
  // SGD
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  // Adam and AdamW
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  /// `sgd`, `adam` or `adamw`.
  llvm::StringRef getName() const;
};

/// Parses NAME[:KEY=VALUE,...]. On failure `error` says what is wrong and what
/// would be right.
mlir::FailureOr<OptimizerSpec> parseOptimizerSpec(llvm::StringRef text,
                                                  std::string &error);

} // namespace penstock

#endif // PENSTOCK_OPTIMIZERS_OPTIMIZERSPEC_H
