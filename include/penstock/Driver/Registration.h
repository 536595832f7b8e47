//===- Registration.h - All dialects and passes of Penstock -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One place that knows them all, shared by the tools.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_REGISTRATION_H
#define PENSTOCK_DRIVER_REGISTRATION_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/IR/DialectRegistry.h"

#include <string>
#include <vector>

namespace penstock {

struct CompileOptions;

/// The dialects of Penstock, the upstream ones that its passes use, the
/// interfaces that are attached to upstream ops, and all kinds of devices.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass and named pipeline of Penstock.
void registerPasses();

/// A kind of device, as --target names it: its dialect.
struct TargetKind {
  llvm::StringLiteral name;
  /// Registers the dialect, and the implementation of Target for it.
  void (*registerTarget)(mlir::DialectRegistry &registry);
  /// Calls penstock::registerKernelPipeline.
  void (*registerKernelPipeline)();
  /// Returns the target of its devices, as the command line asks for it. The
  /// dialect is loaded.
  pipeline::TargetAttrInterface (*makeTarget)(mlir::MLIRContext *context,
                                              const CompileOptions &options);
};

/// Adds the kind of a plug-in, before dialects are registered.
void addTargetKind(const TargetKind &kind);
/// Returns the names of all kinds, in the order in which they were added.
std::vector<std::string> getTargetNames();

/// Returns the target of devices of a kind, as the command line asks for it.
pipeline::TargetAttrInterface getTarget(mlir::MLIRContext *context,
                                        const CompileOptions &options,
                                        llvm::StringRef kind);

/// Returns the target of all devices, or that of each.
llvm::SmallVector<pipeline::TargetAttrInterface>
getTargets(mlir::MLIRContext *context, const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_DRIVER_REGISTRATION_H
