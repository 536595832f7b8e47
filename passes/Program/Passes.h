//===- Passes.h - Program passes --------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From schedules to one function per device over one arena.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PASSES_H
#define PENSTOCK_PASSES_PROGRAM_PASSES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"
#include "llvm/Support/CommandLine.h"

namespace penstock {

// The policies of prepacking, with their words on the command lines.

enum class PrepackPolicy { Auto, None, All };

inline llvm::cl::ValuesClass prepackPolicies() {
  return llvm::cl::values(
      clEnumValN(PrepackPolicy::Auto, "auto", "Where it pays"),
      clEnumValN(PrepackPolicy::None, "none", "Nowhere"),
      clEnumValN(PrepackPolicy::All, "all", "Wherever it can be"));
}

#define GEN_PASS_DECL
#include "passes/Program/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Program/Passes.h.inc"

struct LowerScheduleToProgramOptions
    : mlir::PassPipelineOptions<LowerScheduleToProgramOptions> {
  Option<PrepackPolicy> prepack{
      *this, "prepack",
      llvm::cl::desc("Which weights are reordered once per update"),
      llvm::cl::init(PrepackPolicy::Auto), prepackPolicies()};
  Option<uint64_t> deviceMemory{
      *this, "device-memory",
      llvm::cl::desc("Bytes that a device has; 0: no limit"),
      llvm::cl::init(0)};
};

/// From schedules to device programs.
void buildLowerScheduleToProgramPipeline(
    mlir::OpPassManager &manager, const LowerScheduleToProgramOptions &options);

/// Registers the named pipeline `lower-schedule-to-program`.
void registerProgramPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PASSES_H
