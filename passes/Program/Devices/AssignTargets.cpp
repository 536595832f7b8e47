//===- AssignTargets.cpp - Functions are made for a target ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From here on a function says for what kind of device it is compiled, so that
// passes over functions need not know who runs them. Functions that devices of
// several targets run are cloned.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEASSIGNTARGETS
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

struct AssignTargetsPass
    : penstock::impl::PipelineAssignTargetsBase<AssignTargetsPass> {
  void runOnOperation() override {
    clones.clear();
    assigned.clear();
    FailureOr<StageTargets> targets = getStageTargets();
    if (failed(targets))
      return signalPassFailure();
    SmallVector<ModuleOp> modules{getOperation()};
    llvm::append_range(modules, getOperation().getOps<ModuleOp>());
    SymbolTable root(getOperation());
    symbols = &root;
    for (ModuleOp module : modules) {
      SymbolTable own(module);
      for (auto task : module.getOps<TaskOp>())
        if (!task.isBodyless())
          for (auto call : task.getBody().getOps<func::CallOp>())
            assign(module == getOperation() ? root : own, call,
                   targets->lookup(task.getStage()));
    }
  }

private:
  using StageTargets = llvm::StringMap<TargetAttrInterface>;

  /// That of the devices of every stage of the program.
  FailureOr<StageTargets> getStageTargets() {
    llvm::DenseMap<int64_t, TargetAttrInterface> devices;
    for (auto device : getOperation().getOps<DeviceOp>())
      devices[static_cast<int64_t>(device.getNumber())] = device.getTarget();
    StageTargets result;
    for (auto stage : getOperation().getOps<StageOp>()) {
      TargetAttrInterface &target = result[stage.getSymName()];
      for (int64_t device : stage.getDevices().value_or(ArrayRef<int64_t>())) {
        TargetAttrInterface own = devices.lookup(device);
        if (!own)
          return stage.emitError("runs on device ")
                 << device << ", which has no target: run "
                 << "pipeline-declare-devices first";
        // All of them have the same (C34).
        target = own;
      }
    }
    return result;
  }

  /// Lets a call, in the module of these symbols, have the function for
  /// `target`, and what that calls likewise.
  void assign(SymbolTable &module, func::CallOp call,
              TargetAttrInterface target) {
    auto callee = symbols->lookup<func::FuncOp>(call.getCallee());
    if (!callee || !target)
      return;
    func::FuncOp function = getFunction(callee, target);
    if (function != callee)
      call.setCallee(function.getSymName());
    // A nested module declares what it calls.
    if (!module.lookup(function.getSymName())) {
      Operation *declaration = function->cloneWithoutRegions();
      declaration->removeAttr(kTargetAttr);
      SymbolTable::setSymbolVisibility(declaration,
                                       SymbolTable::Visibility::Private);
      module.insert(declaration,
                    module.lookup(callee.getSymName())->getIterator());
    }
  }

  func::FuncOp getFunction(func::FuncOp function, TargetAttrInterface target) {
    auto [known, isNew] = clones.try_emplace({function, target});
    if (!isNew)
      return known->second;
    func::FuncOp result = function;
    if (!assigned.insert(function).second) {
      result = function.clone();
      symbols->insert(result, std::next(function->getIterator()));
    }
    result->setAttr(kTargetAttr, target);
    clones[{function, target}] = result;
    result.walk([&](func::CallOp call) { assign(*symbols, call, target); });
    return result;
  }

  SymbolTable *symbols = nullptr;
  llvm::DenseMap<std::pair<Operation *, Attribute>, func::FuncOp> clones;
  llvm::DenseSet<Operation *> assigned;
};

} // namespace
