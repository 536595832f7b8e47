//===- Replay.cpp - The same training without a pipeline ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The oracle of `--verify`: same tasks, no pipeline. Which versions they read
// is taken from the table of methods, not from the program. Functions stay
// those of the program itself, so that they compile to the same code.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "dialects/Pipeline/Replicas.h"
#include "penstock/Methods/Method.h"
#include "penstock/Methods/VersionTable.h"
#include "penstock/Schedule/Generators.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEREPLAY
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct ReplayPass : penstock::impl::PipelineReplayBase<ReplayPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    pipeline::ScheduleOp training;
    for (auto schedule : module.getOps<pipeline::ScheduleOp>())
      if (getTaskSet(schedule) == TaskSet::Training)
        training = schedule;
    if (!training)
      return;
    FailureOr<Imported> imported = importSchedule(training, Sizes::Ignore);
    if (failed(imported))
      return signalPassFailure();
    FailureOr<pipeline::TrainingOp> facts = pipeline::requireTraining(module);
    if (failed(facts))
      return signalPassFailure();
    ModuleOp replay = cloneProgram(module, *imported);
    if (failed(readByTable(replay, MethodSpec::fromAttr(facts->getMethodAttr()),
                           training)))
      return signalPassFailure();
    stashLaggedReads(replay);
    splitGradients(replay);
    placeStages(module, replay);
    if (failed(addSchedule(replay, training)))
      return signalPassFailure();
  }

  /// Everything but evaluation, with functions as declarations.
  ModuleOp cloneProgram(ModuleOp module, const Imported &imported) {
    OpBuilder builder(&getContext());
    auto replay = ModuleOp::create(builder, module.getLoc(), "replay");
    SymbolTable symbols(module);
    symbols.insert(replay);
    builder.setInsertionPointToEnd(replay.getBody());

    llvm::SetVector<Operation *> used;
    used.insert(imported.stages.begin(), imported.stages.end());
    used.insert(imported.variables.begin(), imported.variables.end());
    used.insert(imported.channels.begin(), imported.channels.end());
    used.insert(imported.groups.begin(), imported.groups.end());
    used.insert(imported.tasks.begin(), imported.tasks.end());
    for (pipeline::TaskOp task : imported.tasks)
      for (auto call : task.getBody().front().getOps<func::CallOp>())
        if (Operation *function =
                symbols.lookup(call.getCalleeAttr().getAttr()))
          used.insert(function);

    // In the order of the module.
    for (Operation &op : module.getOps()) {
      if (!used.contains(&op))
        continue;
      if (!isa<func::FuncOp>(op)) {
        builder.clone(op);
        continue;
      }
      Operation *declaration = builder.insert(op.cloneWithoutRegions());
      SymbolTable::setSymbolVisibility(declaration,
                                       SymbolTable::Visibility::Private);
    }
    return replay;
  }

  /// Puts every stage on the one device of its kind: no device can run the
  /// functions of another kind, and one runs those of all devices of its own.
  /// It is the one of the program with the most threads.
  void placeStages(ModuleOp module, ModuleOp replay) {
    llvm::MapVector<Dialect *, pipeline::TargetAttrInterface> targets;
    llvm::DenseMap<int64_t, Dialect *> kinds;
    for (auto device : module.getOps<pipeline::DeviceOp>()) {
      kinds[device.getNumber()] = &device.getTarget().getDialect();
      auto &target = targets[kinds[device.getNumber()]];
      if (!target || device.getTarget().getThreads() > target.getThreads())
        target = device.getTarget();
    }
    OpBuilder builder = OpBuilder::atBlockBegin(replay.getBody());
    for (auto [index, target] : llvm::enumerate(targets))
      pipeline::DeviceOp::create(builder, replay.getLoc(),
                                 builder.getI64IntegerAttr(index),
                                 target.second);
    for (auto stage : replay.getOps<pipeline::StageOp>()) {
      int64_t device = 0;
      if (!targets.empty())
        device = targets.find(kinds.at(stage.getDevices()->front())) -
                 targets.begin();
      stage.setDevices(device);
    }
  }

  /// Gradients of replicas add up apart, and so they do on one device.
  void splitGradients(ModuleOp replay) {
    Builder builder(&getContext());
    SymbolTable symbols(replay);
    for (auto variable : replay.getOps<pipeline::VariableOp>()) {
      auto stage =
          symbols.lookup<pipeline::StageOp>(variable.getStageAttr().getAttr());
      if (variable.getRole() == pipeline::Role::Gradient && stage &&
          stage.getDevices()->size() > 1)
        variable->setAttr(
            pipeline::kPartsAttr,
            builder.getI64IntegerAttr(stage.getDevices()->size()));
    }
  }

  /// How many updates forwards run ahead at most, by the name of the schedule.
  static std::optional<int64_t> getUpdatesAhead(pipeline::ScheduleOp training,
                                                size_t depth) {
    pipeline::GeneratorAttr generator = training.getGeneratorAttr();
    auto spec = generator ? getSchedule(generator) : std::nullopt;
    if (!spec || spec->name() != "nf1b")
      return std::nullopt;
    int64_t ahead = spec->getWhole("ahead");
    return ahead > 0 ? ahead : static_cast<int64_t>(depth) - 1;
  }

  /// Lets every task of a microbatch read the weights that the method says,
  /// whatever lags the program has. Stages are where they are there.
  LogicalResult readByTable(ModuleOp replay, const MethodSpec &method,
                            pipeline::ScheduleOp training) {
    llvm::SetVector<Attribute> line;
    for (auto stage : replay.getOps<pipeline::StageOp>())
      line.insert(stage.getDevicesAttr());
    SmallVector<int64_t> replicas;
    for (Attribute devices : line)
      replicas.push_back(cast<DenseI64ArrayAttr>(devices).size());
    llvm::StringMap<WeightAges> ages;
    for (auto stage : replay.getOps<pipeline::StageOp>()) {
      PipelinePlace place;
      place.i = llvm::find(line, stage.getDevicesAttr()) - line.begin();
      place.replicas = replicas;
      place.M = training.getMicrobatches();
      place.ahead = getUpdatesAhead(training, replicas.size());
      std::optional<WeightAges> age = getWeightAges(method, place);
      if (!age)
        return replay.emitError("the table of versions has no row for method ")
               << method.getName();
      ages[stage.getSymName()] = *age;
      if (method.isAsynchronous())
        stage->setDiscardableAttr(
            pipeline::kLagsAttr,
            DenseI64ArrayAttr::get(
                &getContext(),
                Lags{age->forward, age->backward, age->blended}.toArray()));
    }
    llvm::StringSet<> updated;
    for (auto task : replay.getOps<pipeline::TaskOp>())
      if (task.getKind() == pipeline::TaskKind::Update)
        for (auto write : task.getBody().getOps<pipeline::WriteOp>())
          updated.insert(write.getVariable());
    for (auto variable : replay.getOps<pipeline::VariableOp>())
      if (variable.getRole() == pipeline::Role::Gradient)
        updated.erase(variable.getSymName());
    for (auto task : replay.getOps<pipeline::TaskOp>()) {
      const WeightAges &age = ages[task.getStage()];
      // What workers push and fold, and when, goes by waves.
      if (task.countsWaves())
        continue;
      if (!task.countsMicrobatches()) {
        // Of a read beside that of the newest, which the table may not have.
        for (auto read : task.getBody().getOps<pipeline::ReadOp>())
          if (read.getLag() && age.blended > 0)
            read.setLag(age.blended);
        continue;
      }
      bool isForward = task.getKind() == pipeline::TaskKind::Forward;
      for (auto read : task.getBody().getOps<pipeline::ReadOp>())
        if (updated.contains(read.getVariable()))
          read.setLag(isForward ? age.forward : age.backward);
    }
    return success();
  }

  /// On one device, more reads may need an older version than the newest.
  void stashLaggedReads(ModuleOp replay) {
    llvm::SetVector<StringRef> lagged;
    replay.walk([&](pipeline::ReadOp read) {
      if (read.getLag().value_or(0) > 0)
        lagged.insert(read.getVariable());
    });
    SymbolTable symbols(replay);
    for (StringRef name : lagged) {
      Operation *variable = symbols.lookup(name);
      OpBuilder builder(variable->getContext());
      builder.setInsertionPointAfter(variable);
      pipeline::WeightStashOp::create(
          builder, variable->getLoc(),
          FlatSymbolRefAttr::get(variable->getContext(), name),
          builder.getI64IntegerAttr(2));
    }
  }

  LogicalResult addSchedule(ModuleOp replay, pipeline::ScheduleOp training) {
    FailureOr<Imported> imported = importModel(
        replay, TaskSet::Training, training.getMicrobatches(), Sizes::Ignore);
    if (failed(imported))
      return failure();
    const MethodSpec method =
        MethodSpec::fromAttr(pipeline::getTraining(replay).getMethodAttr());
    if (auto waves = method.getMethod().getWaves(method)) {
      imported->model.wave = waves->wave;
      imported->model.distance = waves->workers > 1 ? waves->distance : 0;
    }
    penstock::addSchedule(replay, training.getRole(), *imported,
                          generateReplay(imported->model));
    auto schedule = *replay.getOps<pipeline::ScheduleOp>().begin();
    if (failed(penstock::orderTransfers(schedule)))
      return failure();
    return penstock::sizeStorage(replay);
  }
};

} // namespace
