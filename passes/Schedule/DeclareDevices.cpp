//===- DeclareDevices.cpp - What every device is --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages have numbers of devices; the program says what each of them is, by an
// attribute that is given as text.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/AsmParser/AsmParser.h"

#include <set>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEDECLAREDEVICES
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

struct DeclareDevicesPass
    : penstock::impl::PipelineDeclareDevicesBase<DeclareDevicesPass> {
  using PipelineDeclareDevicesBase::PipelineDeclareDevicesBase;

  void runOnOperation() override {
    ModuleOp root = getOperation();
    FailureOr<SmallVector<TargetAttrInterface>> list = parseTargets();
    if (failed(list))
      return signalPassFailure();
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(declare(module, *list)))
        return signalPassFailure();
  }

private:
  FailureOr<SmallVector<TargetAttrInterface>> parseTargets() {
    Attribute value = parseAttribute(targets, &getContext());
    if (!value)
      return failure();
    SmallVector<TargetAttrInterface> result;
    auto array = dyn_cast<ArrayAttr>(value);
    for (Attribute element :
         array ? array.getValue() : ArrayRef<Attribute>(value)) {
      auto target = dyn_cast<TargetAttrInterface>(element);
      if (!target)
        return getOperation().emitError("pipeline-declare-devices: ")
               << element << " is not the target of a device";
      result.push_back(target);
    }
    if (result.empty())
      return getOperation().emitError(
          "pipeline-declare-devices: there is no target");
    return result;
  }

  LogicalResult declare(ModuleOp module, ArrayRef<TargetAttrInterface> list) {
    std::set<int64_t> devices;
    Operation *first = nullptr;
    for (auto stage : module.getOps<StageOp>()) {
      if (!first)
        first = stage;
      for (int64_t device : stage.getDevices().value_or(ArrayRef<int64_t>()))
        devices.insert(device);
    }
    // The replay has one device.
    if (module == getOperation() && list.size() > 1 && !devices.empty()) {
      auto count = static_cast<size_t>(*devices.rbegin()) + 1;
      if (count != list.size())
        return module.emitError("pipeline-declare-devices: there are ")
               << list.size() << " targets for " << count
               << (count == 1 ? " device" : " devices")
               << "; there is one for all, or one for each";
    }
    for (auto device : module.getOps<DeviceOp>())
      devices.erase(static_cast<int64_t>(device.getNumber()));
    for (int64_t device : devices) {
      OpBuilder builder(first);
      DeviceOp::create(builder, module.getLoc(),
                       builder.getI64IntegerAttr(device),
                       list.size() == 1 ? list.front() : list[device]);
    }
    return success();
  }
};

} // namespace
