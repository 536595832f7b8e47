//===- TaskTimes.cpp - How long tasks and transfers take ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See TaskTimes.h.
//===----------------------------------------------------------------------===//

#include "TaskTimes.h"

#include "passes/Partition/Passes.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Target/PlannedCost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Seconds of tasks. A function that tasks of several workers call is costed
/// once.
class AnalyticSeconds {
public:
  explicit AnalyticSeconds(ModuleOp module) : module(module), symbols(module) {}

  double get(pipeline::TaskOp task);

private:
  pipeline::TargetAttrInterface getTarget(pipeline::TaskOp task);

  ModuleOp module;
  SymbolTable symbols;
  llvm::DenseMap<std::pair<Operation *, Attribute>, double> known;
};

} // namespace

/// Returns that of the devices of a task's stage, where they are declared.
pipeline::TargetAttrInterface
AnalyticSeconds::getTarget(pipeline::TaskOp task) {
  auto stage = symbols.lookup<pipeline::StageOp>(task.getStage());
  ArrayRef<int64_t> devices =
      stage ? stage.getDevices().value_or(ArrayRef<int64_t>())
            : ArrayRef<int64_t>();
  for (auto device : module.getOps<pipeline::DeviceOp>())
    if (llvm::is_contained(devices, device.getNumber()))
      if (Target::get(device.getTarget()))
        return device.getTarget();
  return pipeline::TargetAttrInterface();
}

/// Returns the rates of the links that the program is planned for.
static MachineRates getLinkRates(Operation *op) {
  return getPlanRates(op->getParentOfType<ModuleOp>()).value_or(MachineRates());
}

double AnalyticSeconds::get(pipeline::TaskOp task) {
  double total = 0;
  if (task.isBodyless())
    return total;
  pipeline::TargetAttrInterface target = getTarget(task);
  for (auto call : task.getBody().front().getOps<func::CallOp>()) {
    auto function = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!function || function.isExternal())
      continue;
    auto [seconds, isNew] = known.try_emplace({function, target});
    if (isNew) {
      PlannedCost costs = PlannedCost::get(module, target);
      for (Operation &op : function.getBody().front().without_terminator())
        seconds->second += costs.getSeconds(&op);
    }
    total += seconds->second;
  }
  return total;
}

/// The same on devices of speed 1.
static std::vector<double> getSeconds(ModuleOp module,
                                      const schedule::Imported &imported) {
  std::vector<double> seconds;
  AnalyticSeconds analytic(module);
  for (pipeline::TaskOp task : imported.tasks)
    seconds.push_back(analytic.get(task));
  auto measured =
      module->getAttrOfType<DenseF64ArrayAttr>(pipeline::kStageSecondsAttr);
  const auto &tasks = imported.model.tasks;
  if (!measured ||
      measured.size() != static_cast<int64_t>(3 * imported.model.stages.size()))
    return seconds;
  // The analytic backward of every stage, whole or in halves.
  std::vector<double> backward(imported.model.stages.size());
  auto isBackward = [](char letter) {
    return letter == 'B' || letter == 'I' || letter == 'W';
  };
  for (auto [task, value] : llvm::zip_equal(tasks, seconds))
    if (isBackward(task.letter))
      backward[task.stage] += value;
  for (auto [task, value] : llvm::zip_equal(tasks, seconds)) {
    double whole = backward[task.stage];
    if (isBackward(task.letter))
      value = measured[3 * task.stage + 1] * (whole > 0 ? value / whole : 1);
    else if (task.letter == 'F' || task.letter == 'E')
      value = measured[3 * task.stage];
    else if (task.letter == 'U')
      value = measured[3 * task.stage + 2];
  }
  return seconds;
}

std::vector<double> penstock::getTaskSeconds(ModuleOp module,
                                             const schedule::Imported &imported,
                                             ArrayRef<double> speeds) {
  std::vector<double> seconds = getSeconds(module, imported);
  if (speeds.size() == imported.model.stages.size())
    for (auto [task, value] : llvm::zip_equal(imported.model.tasks, seconds))
      value /= speeds[task.stage];
  return seconds;
}

/// The variables of every stage that takes part, and those of one of them.
double penstock::getSumSeconds(pipeline::GroupOp group) {
  double parts = 0, bytes = 0;
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    double own = 0;
    std::optional<ArrayRef<int64_t>> devices;
    for (auto name : member.getAsRange<FlatSymbolRefAttr>()) {
      auto variable =
          SymbolTable::lookupNearestSymbolFrom<pipeline::VariableOp>(group,
                                                                     name);
      own += getTypeBytes(variable.getType());
      if (FlatSymbolRefAttr stage = variable.getStageAttr())
        devices = SymbolTable::lookupNearestSymbolFrom<pipeline::StageOp>(group,
                                                                          stage)
                      .getDevices();
    }
    parts += devices ? static_cast<double>(devices->size()) : 1;
    bytes = std::max(bytes, own);
  }
  return 2 * (parts - 1) / parts * bytes / getLinkRates(group).getLink();
}

double penstock::getTransferSeconds(pipeline::ChannelOp channel) {
  double bytes = 0;
  for (Type type : channel.getTypes().getAsValueRange<TypeAttr>())
    bytes += getTypeBytes(type);
  return getLinkRates(channel).getTransferSeconds(bytes);
}
