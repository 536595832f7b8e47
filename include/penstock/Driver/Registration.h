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

namespace penstock {

struct CompileOptions;

/// The dialects of Penstock, the upstream ones that its passes use, the
/// interfaces that are attached to upstream ops, and all kinds of devices.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass and named pipeline of Penstock.
void registerPasses();

/// Returns the target of devices of a kind, as the command line asks for it.
pipeline::TargetAttrInterface getTarget(mlir::MLIRContext *context,
                                        const CompileOptions &options,
                                        llvm::StringRef kind);

/// Returns the target of all devices, or that of each.
llvm::SmallVector<pipeline::TargetAttrInterface>
getTargets(mlir::MLIRContext *context, const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_DRIVER_REGISTRATION_H
