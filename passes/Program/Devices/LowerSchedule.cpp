//===- LowerSchedule.cpp - Orders become functions ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes one function per device and schedule (DeviceBuilder.h) and lets the
// bufferised functions take the names of the originals. Tasks and schedules
// remain as names, tasks with their calls by position.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceBuilder.h"
#include "passes/Program/Devices/StateCalls.h"
#include "passes/Program/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINELOWERSCHEDULE
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

bool usesTensors(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<TensorType>) ||
         llvm::any_of(function.getResultTypes(), llvm::IsaPred<TensorType>);
}

struct LowerSchedulePass
    : public penstock::impl::PipelineLowerScheduleBase<LowerSchedulePass> {
  void runOnOperation() override {
    ModuleOp root = getOperation();
    // The replay program calls the kernels of this one.
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(lowerOrders(root, module)))
        return signalPassFailure();
    for (ModuleOp module : llvm::drop_begin(modules))
      retypeDeclarations(root, module);
    replaceFunctions(root);
  }

  LogicalResult lowerOrders(ModuleOp root, ModuleOp module) {
    for (auto schedule : module.getOps<ScheduleOp>()) {
      if (schedule.isBodyless())
        continue;
      FailureOr<Storage> storage = Storage::get(schedule);
      if (failed(storage))
        return failure();
      storage->markEnds();
      for (auto order : schedule.getBody().getOps<OrderOp>())
        if (failed(DeviceBuilder(root, *storage, schedule).run(order)))
          return failure();
      for (Operation *task : storage->getTasks())
        if (failed(stateCalls(cast<TaskOp>(task), *storage)))
          return failure();
    }
    for (auto schedule : module.getOps<ScheduleOp>())
      schedule.getBody().getBlocks().clear();
    for (auto task : module.getOps<TaskOp>())
      task.getBody().getBlocks().clear();
    return success();
  }

  /// Declarations of the replay program take the type of the kernels.
  void retypeDeclarations(ModuleOp root, ModuleOp module) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function.isDeclaration())
        continue;
      auto kernel = root.lookupSymbol<func::FuncOp>(
          (function.getSymName() + kKernelSuffix).str());
      function->removeAttr(kSignatureAttr);
      if (kernel) {
        function.setFunctionType(kernel.getFunctionType());
        function.setAllArgAttrs(kernel.getAllArgAttrs());
        function.setAllResultAttrs(kernel.getAllResultAttrs());
      } else if (usesTensors(function)) {
        function.erase();
      }
    }
  }

  /// Kernels take the names of the functions that they were made from.
  void replaceFunctions(ModuleOp root) {
    llvm::StringMap<StringRef> names;
    for (auto function :
         llvm::make_early_inc_range(root.getOps<func::FuncOp>())) {
      if (!usesTensors(function))
        continue;
      std::string kernel = (function.getSymName() + kKernelSuffix).str();
      names[kernel] = function.getSymNameAttr().strref();
      function.erase();
    }
    for (auto function : root.getOps<func::FuncOp>()) {
      function->removeAttr(kSignatureAttr);
      auto name = names.find(function.getSymName());
      if (name != names.end())
        function.setSymName(name->second);
      function.walk([&](func::CallOp call) {
        auto callee = names.find(call.getCallee());
        if (callee != names.end())
          call.setCallee(callee->second);
      });
    }
  }
};

} // namespace
