//===- ConvertPipelineToRuntime.cpp - Device programs call the ABI --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots become addresses in the arena, transfers and library products calls of
// the runtime, and variables, channels, tasks and schedules the tables of the
// constant penstock_program. The replay program is merged into the module.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/ActionTable.h"
#include "passes/Runtime/DeviceFunctions.h"
#include "passes/Runtime/LaunchTable.h"
#include "passes/Runtime/LibraryCalls.h"
#include "passes/Runtime/Passes.h"
#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/OptimizerSpec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace penstock {
#define GEN_PASS_DEF_CONVERTPIPELINETORUNTIME
#include "passes/Runtime/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

constexpr StringLiteral kProgram = "penstock_program";
constexpr StringLiteral kReplay = "replay.penstock_program";
constexpr StringLiteral kReplayPrefix = "replay.";

struct ConvertPipelineToRuntime
    : public penstock::impl::ConvertPipelineToRuntimeBase<
          ConvertPipelineToRuntime> {
  using ConvertPipelineToRuntimeBase::ConvertPipelineToRuntimeBase;

  void runOnOperation() override {
    if (failed(convertModule(getOperation())))
      signalPassFailure();
  }

  LogicalResult convertModule(ModuleOp root) {
    ModuleOp replay;
    for (auto module : root.getOps<ModuleOp>()) {
      if (replay)
        return module.emitError("there is more than one nested module");
      replay = module;
    }
    ProgramTable table, replayTable;
    if (failed(table.collect(root)) ||
        (replay && failed(replayTable.collect(replay))))
      return failure();
    FileTable files;
    ScratchPlaces places(root);
    CallTable gemms(places);
    CallTable convs(places);
    LaunchTable launches;
    ActionTable actions;
    if (failed(files.collect(root)) || failed(launches.collect(root)) ||
        failed(actions.collect(root)) ||
        failed(collectLibraryCalls(root, replay, gemms, convs)))
      return failure();

    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(&getContext(), options);
    RuntimeCalls runtime(root);
    if (failed(launches.convert(runtime)) || failed(actions.convert(runtime)) ||
        failed(convertLibraryCalls(runtime, gemms, convs)) ||
        failed(convertDevices(runtime, table, types, root, "")) ||
        (replay && failed(convertDevices(runtime, replayTable, types, replay,
                                         kReplayPrefix))))
      return failure();
    convertRate(runtime, table);

    ProgramTexts texts = getTexts(root);
    ConstantBuilder constants(root);
    if (replay &&
        failed(replayTable.emit(constants, kReplay, kReplayPrefix, files, gemms,
                                convs, launches, actions, texts, "")))
      return failure();
    if (failed(table.emit(constants, kProgram, "", files, gemms, convs,
                          launches, actions, texts, replay ? kReplay : "")))
      return failure();
    if (replay)
      replay.erase();
    removeRest(root);
    return success();
  }

  ProgramTexts getTexts(ModuleOp root) {
    ProgramTexts texts;
    texts.plan = plan;
    TrainingOp training = getTraining(root);
    MethodSpec method = MethodSpec::fromAttr(training ? training.getMethodAttr()
                                                      : MethodAttr());
    texts.method = method.getText();
    texts.flushedUpdates = method.getMethod().getFlushedUpdates(method);
    if (training) {
      texts.precision = training.getPrecision();
      if (OptimizerAttr optimizer = training.getOptimizerAttr())
        texts.optimizer = OptimizerSpec::fromAttr(optimizer).getText();
    }
    for (auto op : root.getOps<ScheduleOp>())
      if (GeneratorAttr generator = op.getGeneratorAttr())
        texts.schedule = generator.getText();
    return texts;
  }

  LogicalResult convertDevices(RuntimeCalls &runtime, const ProgramTable &table,
                               LLVMTypeConverter &types, ModuleOp module,
                               StringRef prefix) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(kDeviceAttr))
        continue;
      std::string name = (prefix + function.getSymName()).str();
      // The new function takes the place, and often the name, of the old.
      function.setSymName(name + ".old");
      if (failed(convertDeviceFunction(runtime, table, types, function, name)))
        return failure();
    }
    return success();
  }

  /// The tables can only name LLVM functions.
  void convertRate(RuntimeCalls &runtime, const ProgramTable &table) {
    if (table.getRate().empty())
      return;
    auto rate = runtime.root.lookupSymbol<func::FuncOp>(table.getRate());
    Location loc = rate.getLoc();
    OpBuilder builder = OpBuilder::atBlockEnd(runtime.root.getBody());
    Type f32 = builder.getF32Type();
    auto function = LLVM::LLVMFuncOp::create(
        builder, loc, kRateFunction,
        LLVM::LLVMFunctionType::get(f32, {runtime.pointer, f32, runtime.i64}),
        LLVM::Linkage::Internal);
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToEnd(entry);
    SmallVector<Value> operands(entry->getArguments());
    operands.back() = arith::IndexCastOp::create(
        builder, loc, builder.getIndexType(), operands.back());
    auto call = func::CallOp::create(
        builder, loc, rate,
        ValueRange(operands).take_back(rate.getNumArguments()));
    LLVM::ReturnOp::create(builder, loc, call.getResults());
  }

  /// What remains are kernels, visible in this object only.
  void removeRest(ModuleOp root) {
    root->removeAttr(kModelAttr);
    for (Operation &op : llvm::make_early_inc_range(*root.getBody())) {
      // Printed programs keep what they were made with.
      if (isa<TrainingOp>(op))
        continue;
      if (isa<PipelineDialect>(op.getDialect())) {
        op.erase();
        continue;
      }
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function)
        continue;
      function->removeAttr(kTargetAttr);
      if (!function.isDeclaration())
        function->setAttr(
            "llvm.linkage",
            LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      for (unsigned i : llvm::seq(function.getNumArguments()))
        for (StringRef attr : {kIntoAttr, kOutAttr, kScratchAttr})
          function.removeArgAttr(i, attr);
    }
  }
};

} // namespace
