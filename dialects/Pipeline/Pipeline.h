//===- Pipeline.h - The pipeline dialect ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect, its attributes and its ops; see PipelineOps.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINE_H
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINE_H

#include "dialects/Pipeline/DiscardableAttributes.h"
#include "dialects/Pipeline/SpecAttributes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace penstock::pipeline {
/// The resource that reads, writes, takes and puts act on.
struct State : mlir::SideEffects::Resource::Base<State> {
  llvm::StringRef getName() override { return "PipelineState"; }
};
} // namespace penstock::pipeline

#include "dialects/Pipeline/PipelineAttrInterfaces.h.inc"
#include "dialects/Pipeline/PipelineDialect.h.inc"
#include "dialects/Pipeline/PipelineEnums.h.inc"
#include "dialects/Pipeline/PipelineInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Pipeline/PipelineAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Pipeline/PipelineOps.h.inc"

namespace penstock::pipeline {
/// Where the bytes of an entry of kTiedAttr are.
BytesAttr getBytes(mlir::Attribute tied);

/// Prints a term of a signature: `@x`, `@s0.forward[1]`, `parameter`, `"lr"`,
/// alternatives with `|`, or `_`.
void printTerm(llvm::raw_ostream &stream, mlir::Attribute term);

/// The facts of the program that a module is or is nested in; null if it has
/// none.
TrainingOp getTraining(mlir::ModuleOp module);
/// Adds those of a program that trains, with one microbatch per update, or,
/// without an optimizer, of one that infers.
TrainingOp addTraining(mlir::ModuleOp module, OptimizerAttr optimizer);
/// The facts of the program, or an error at the module.
mlir::FailureOr<TrainingOp> requireTraining(mlir::ModuleOp module);

/// Returns the target of the function that `op` is or stands in; null where it
/// has none.
TargetAttrInterface getTarget(mlir::Operation *op);

/// Returns whether devices of this kind, the dialect of their targets, run the
/// function, or whether it has no target. Any function is of kind "".
bool isOfKind(mlir::func::FuncOp function, llvm::StringRef kind);
} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINE_H
