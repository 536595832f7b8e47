//===- PipelineBase.td - What ops of the dialect share -----*- tablegen -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ops may stand, and the kinds of their operands and attributes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PIPELINEBASE_TD
#define PENSTOCK_DIALECTS_PIPELINE_PIPELINEBASE_TD

include "dialects/Pipeline/PipelineDialect.td"
include "dialects/Pipeline/PipelineInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pipeline_Op<string mnemonic, list<Trait> traits = []>
    : Op<Pipeline_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

// Reads and writes of variables and messages are ordered among themselves:
// CSE and canonicalization leave them alone.
def Pipeline_State : Resource<"::penstock::pipeline::State">;
def Pipeline_ReadsState : MemoryEffects<[MemRead<Pipeline_State>]>;
def Pipeline_WritesState : MemoryEffects<[MemWrite<Pipeline_State>]>;

class In<string parent> : HasParent<parent>;
def InModule : In<"::mlir::ModuleOp">;
def InTask : In<"TaskOp">;
def InTaskOrFunction : ParentOneOf<["TaskOp", "::mlir::func::FuncOp",
                                    "::mlir::scf::ForOp", "::mlir::scf::IfOp"]>;
def InSchedule : ParentOneOf<["OrderOp", "RepeatOp"]>;
def InFunction : ParentOneOf<["::mlir::func::FuncOp", "::mlir::scf::ForOp",
                              "::mlir::scf::IfOp"]>;

def Positive : ConfinedAttr<I64Attr, [IntPositive]>;
def NonNegative : ConfinedAttr<I64Attr, [IntNonNegative]>;
def Pipeline_Tensor : RankedTensorOf<[AnyType]>;
def Pipeline_CallArrayAttr
    : TypedArrayAttrBase<Pipeline_CallAttr, "calls with their operands">;
def Pipeline_PutArrayAttr
    : TypedArrayAttrBase<Pipeline_PutAttr, "messages with their buffers">;

#endif // PENSTOCK_DIALECTS_PIPELINE_PIPELINEBASE_TD
