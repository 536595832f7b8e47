//===- DiscardableAttributes.cpp - What they may be on --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of the attributes on ops, and the rule of the one on results.
//===----------------------------------------------------------------------===//

#include "dialects/AttributeRules.h"
#include "dialects/Onnx/Onnx.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

static bool isNamesOnModule(Operation *op, Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return isa<ModuleOp>(op) && names &&
         llvm::all_of(names, llvm::IsaPred<StringAttr>);
}

static bool isPassedOn(Operation *op, Attribute value) {
  auto names = dyn_cast<DictionaryAttr>(value);
  return isa<ModuleOp>(op) && names &&
         llvm::all_of(names, [](NamedAttribute name) {
           return isa<StringAttr>(name.getValue());
         });
}

static bool isBatchOfFunction(Operation *op, Attribute value) {
  auto batch = dyn_cast<IntegerAttr>(value);
  return isa<FunctionOpInterface>(op) && batch &&
         batch.getType().isInteger(64) && batch.getInt() >= 1;
}

static bool isOnBranch(Operation *op, Attribute value) {
  return isa<NodeOp, LoopOp>(op) && isa<UnitAttr>(value);
}

static const AttributeRule rules[] = {
    {kConstantInitializersAttr, isNamesOnModule,
     "a list of names, on the module"},
    {kUnreachedInitializersAttr, isNamesOnModule,
     "a list of names, on the module"},
    {kUnusedInputsAttr, isNamesOnModule, "a list of names, on the module"},
    {kPassedOnAttr, isPassedOn, "names by names, on the module"},
    {kReboundBatchAttr, isBatchOfFunction, "a batch size, on a function"},
    {kBranchAttr, isOnBranch, "without a value, on a node or a loop"},
};

LogicalResult OnnxDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  return verifyAttribute(rules, op, attr);
}

LogicalResult OnnxDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned,
                                                    NamedAttribute attr) {
  return op->emitOpError() << "'" << attr.getName().getValue()
                           << "' is no attribute of an argument";
}

LogicalResult OnnxDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                       unsigned,
                                                       NamedAttribute attr) {
  if (attr.getName() != kOutputNameAttr)
    return op->emitOpError() << "'" << attr.getName().getValue()
                             << "' is no attribute of a result";
  if (!isa<StringAttr>(attr.getValue()))
    return op->emitOpError() << "'" << kOutputNameAttr << "' is a name";
  return success();
}
