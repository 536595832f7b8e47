//===- MethodSpec.h - A training method with its parameters -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--method` and `#pipeline.method` name a row of the table of methods, with
// the values of its keys; and what the method asks of the rest of a plan.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_METHODS_METHODSPEC_H
#define PENSTOCK_METHODS_METHODSPEC_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Schedule/Generators.h"

namespace penstock {

class Method;

/// A training method with its parameters.
class MethodSpec : public Spec {
public:
  /// `sync`.
  MethodSpec();
  explicit MethodSpec(Spec spec) : Spec(std::move(spec)) {}

  const Method &getMethod() const;
  /// Returns true if microbatches of different updates are in flight together.
  bool isAsynchronous() const;

  pipeline::MethodAttr toAttr(mlir::MLIRContext *context) const;
  /// Without an attribute: `sync`.
  static MethodSpec fromAttr(pipeline::MethodAttr attr);
};

/// Parses NAME[:KEY[=VALUE],...]. On failure `error` says what is wrong and
/// what would be right.
mlir::FailureOr<MethodSpec> parseMethodSpec(llvm::StringRef text,
                                            std::string &error);
/// The same, for options.
inline mlir::FailureOr<MethodSpec>
parseSpecAs(const MethodSpec *, llvm::StringRef text, std::string &error) {
  return parseMethodSpec(text, error);
}

/// The method of this name, with its default parameters.
MethodSpec getMethodNamed(llvm::StringRef name);

/// Checks what a method asks of the number of microbatches per update, of the
/// numbers of replicas (none given: one each) and of the optimizer. On failure
/// `error` says what would work.
mlir::LogicalResult checkMethod(const MethodSpec &method, int64_t microbatches,
                                llvm::ArrayRef<int64_t> replicas,
                                const OptimizerSpec &optimizer,
                                std::string &error);

/// Checks what a method asks of the depth of the pipeline, with the number of
/// replicas at each position of the line.
mlir::LogicalResult checkMethodDepth(const MethodSpec &method,
                                     llvm::ArrayRef<int64_t> replicas,
                                     int64_t microbatches, std::string &error);

/// Checks that a method runs under a schedule. On failure `error` says under
/// which it does.
mlir::LogicalResult checkMethodSchedule(const MethodSpec &method,
                                        const schedule::ScheduleSpec &schedule,
                                        std::string &error);

/// Returns true if the method supports a stage of so many replicas, with so
/// many devices behind it, as these checks see it.
bool allowsStage(const MethodSpec &method, int64_t replicas, int64_t after,
                 int64_t microbatches);

/// Names of all methods, in the order of the table.
std::vector<std::string> getMethodNames();

/// The same, comma-separated.
std::string listMethods();

/// Names of the methods whose backward reads the weights that its forward read,
/// comma-separated.
std::string listMethodsKeepingWeights();

/// Lets the dialect verify methods by their table.
void registerMethods(mlir::DialectRegistry &registry);

} // namespace penstock

PENSTOCK_SPEC_OPTION(penstock::MethodSpec, "method")

#endif // PENSTOCK_METHODS_METHODSPEC_H
