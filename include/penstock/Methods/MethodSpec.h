//===- MethodSpec.h - The text of --method ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `pipemare:anneal-steps=500,decay=0.135` as a checked record. The driver and
// the passes parse with the same function.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_METHODS_METHODSPEC_H
#define PENSTOCK_METHODS_METHODSPEC_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Optimizers/OptimizerSpec.h"

namespace penstock {

using pipeline::MethodKind;

/// A training method with its parameters.
struct MethodSpec {
  MethodKind kind = MethodKind::Sync;
  // PipeDream
  bool verticalSync = false;
  // PipeMare: updates over which rates are divided (T1, 0: off), D of the
  // discrepancy correction (T2, 0: off), synchronous updates at first (T3).
  int64_t annealSteps = 0;
  double decay = 0.135353;
  int64_t warmupSteps = 0;

  /// As written before the colon.
  llvm::StringRef getName() const { return stringifyMethodKind(kind); }
  /// As a schedule has it, and back.
  pipeline::MethodAttr toAttr(mlir::MLIRContext *context) const;
  static MethodSpec fromAttr(pipeline::MethodAttr attr);
  /// Whether microbatches of different updates are in flight together.
  bool isAsynchronous() const { return kind != MethodKind::Sync; }
};

/// Parses NAME[:KEY[=VALUE],...]. On failure `error` says what is wrong and
/// what would be right.
mlir::FailureOr<MethodSpec> parseMethodSpec(llvm::StringRef text,
                                            std::string &error);

/// What a method asks of the number of microbatches per update, of the numbers
/// of replicas (none given: one each) and of the optimizer. On failure `error`
/// says what would work.
mlir::LogicalResult checkMethod(const MethodSpec &method, int64_t microbatches,
                                llvm::ArrayRef<int64_t> replicas,
                                const OptimizerSpec &optimizer,
                                std::string &error);

/// What a method asks of the depth of the pipeline: how many replicas there are
/// at each place of the line.
mlir::LogicalResult checkMethodDepth(const MethodSpec &method,
                                     llvm::ArrayRef<int64_t> replicas,
                                     int64_t microbatches, std::string &error);

/// Whether the method takes a stage of so many replicas, with so many devices
/// behind it, as these checks see it.
bool allowsStage(const MethodSpec &method, int64_t replicas, int64_t after,
                 int64_t microbatches);

/// Names of all methods, comma-separated.
std::string listMethods();

} // namespace penstock

#endif // PENSTOCK_METHODS_METHODSPEC_H
