//===- AddDeviceArgument.cpp - Passes the device through all functions ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's functions take the device as their first argument. Giving it to
// every function alike keeps all calls uniform, whether a kernel turns out to
// need it or not.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEADDDEVICEARGUMENT
#include "passes/Runtime/Passes.h.inc"
} // namespace penstock

using namespace mlir;

namespace {

struct AddDeviceArgumentPass
    : penstock::impl::PipelineAddDeviceArgumentBase<AddDeviceArgumentPass> {
  void runOnOperation() override {
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    llvm::StringSet<> defined;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration())
        defined.insert(function.getName());

    // 1. Signatures. A declaration counts when this module has the body.
    getOperation().walk([&](func::FuncOp function) {
      if (function.isDeclaration() && !defined.contains(function.getName()))
        return;
      if (failed(function.insertArgument(0, pointer, {}, function.getLoc())))
        signalPassFailure();
    });

    // 2. Calls.
    SymbolTableCollection symbols;
    getOperation().walk([&](func::CallOp call) {
      auto caller = call->getParentOfType<func::FuncOp>();
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!caller || !callee ||
          callee.getNumArguments() == call.getNumOperands())
        return;
      call->insertOperands(0, Value(caller.getArgument(0)));
    });
  }
};

} // namespace
