//===- Profile.h - Measured costs of ONNX nodes -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a model with one stage per ONNX node, all on one device, trains it
// for some steps on made-up data and reads the times from its trace. Keeps
// them, by shape and machine, in a file of the user's cache.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_PROFILE_H
#define PENSTOCK_DRIVER_PROFILE_H

#include "penstock/Driver/Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace penstock {

/// Gives the units of the forward function of `module`, at level graph and
/// without boundaries, the seconds that were measured for them (see
/// setMeasuredSeconds of Units.h). Of `options`, those count that change code.
/// False, with `reason`, when they cannot be measured; then nothing changes.
bool profileUnits(mlir::ModuleOp module, const CompileOptions &options,
                  std::string &reason);

/// The same for the stages of a module at level stages, as they will run: what
/// a stage fuses, and that other devices use memory, too, counts. Sets
/// kStageSecondsAttr.
bool profileStages(mlir::ModuleOp module, const CompileOptions &options,
                   std::string &reason);

} // namespace penstock

#endif // PENSTOCK_DRIVER_PROFILE_H
