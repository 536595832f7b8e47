//===- Loops.h - Loops whose number of runs is known ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TensorFlow's recurrent layers are loops over time. Once shapes are known they
// run a fixed number of times, and are unrolled.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_LOOPS_H
#define PENSTOCK_PASSES_FRONTEND_LOOPS_H

#include "Sequences.h"

namespace penstock {

/// Replaces a loop by the ops of its runs. `resolveOp` is given each op of a
/// run in order, `resolveNode` each node that joins what the runs give. The
/// operands of the loop have their types.
llvm::LogicalResult
unrollLoop(onnx::LoopOp loop,
           llvm::function_ref<llvm::LogicalResult(mlir::Operation *)> resolveOp,
           ResolveNodeFn resolveNode);

} // namespace penstock

#endif // PENSTOCK_PASSES_FRONTEND_LOOPS_H
