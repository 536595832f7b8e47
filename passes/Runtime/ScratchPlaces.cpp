//===- ScratchPlaces.cpp - Where library calls have their scratch ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read off the device functions, while they still call kernels with their
// temporaries.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/ScratchPlaces.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

Attribute ScratchPlace::getKey(MLIRContext *context) const {
  Builder builder(context);
  return builder.getArrayAttr({builder.getI64IntegerAttr(bytes),
                               builder.getDenseI64ArrayAttr(program),
                               builder.getDenseI64ArrayAttr(replay)});
}

abi::scratch ScratchPlace::getFields(ConstantBuilder &constants,
                                     bool ofReplay) const {
  ArrayRef<int64_t> places = ofReplay ? replay : program;
  return {.bytes = bytes, .offsets = constants.shape(places)};
}

ScratchPlaces::ScratchPlaces(ModuleOp root) : program(collect(root)) {
  for (auto module : root.getOps<ModuleOp>())
    replay = collect(module);
}

ScratchPlaces::Program ScratchPlaces::collect(ModuleOp module) {
  Program result;
  for (auto arena : module.getOps<ArenaOp>())
    result.devices =
        std::max(result.devices, static_cast<int64_t>(arena.getDevice()) + 1);
  for (auto function : module.getOps<func::FuncOp>()) {
    auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    if (!device)
      continue;
    function.walk([&](func::CallOp call) {
      for (Value operand : call.getOperands())
        if (auto scratch = operand.getDefiningOp<ScratchOp>())
          result.kernels[call.getCallee()][device.getInt()] =
              static_cast<int64_t>(scratch.getAt().value_or(0));
    });
  }
  return result;
}

ScratchPlace ScratchPlaces::get(kernel::LibraryCallOpInterface call) const {
  ScratchPlace result;
  kernel::ScratchAttr scratch = call.getScratchAttr();
  auto kernel = call->getParentOfType<func::FuncOp>();
  if (!scratch || !kernel)
    return result;
  result.bytes = scratch.getBytes();
  auto find = [&](const Program &program, SmallVector<int64_t> &places) {
    auto found = program.kernels.find(kernel.getSymName());
    if (found == program.kernels.end())
      return;
    for (int64_t device : llvm::seq<int64_t>(0, program.devices)) {
      auto place = found->second.find(device);
      bool isThere = place != found->second.end();
      places.push_back(isThere ? place->second + scratch.getOffset()
                               : static_cast<int64_t>(PENSTOCK_NO_OFFSET));
    }
  };
  find(program, result.program);
  find(replay, result.replay);
  return result;
}
