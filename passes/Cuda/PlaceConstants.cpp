//===- PlaceConstants.cpp - Constants of library calls on a GPU -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel has its constants beside its code. What a library reads the runtime
// copies to the device.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPLACECONSTANTS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

struct PlaceConstantsPass
    : penstock::impl::PipelinePlaceConstantsBase<PlaceConstantsPass> {
  using PipelinePlaceConstantsBase::PipelinePlaceConstantsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isStageFunction(function, kind))
      return;
    function.walk([](memref::GetGlobalOp global) {
      OpBuilder builder(global);
      if (!global.use_empty())
        global.replaceAllUsesWith(
            kernel::ConstantOp::create(builder, global.getLoc(),
                                       global.getType(), global.getNameAttr())
                .getResult());
      global.erase();
    });
  }
};

} // namespace
