//===- ConvertPipelineToRuntime.cpp - Device programs call the ABI --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots become addresses in the arena, transfers and library products calls of
// the runtime, and variables, channels, tasks and schedules the tables of the
// constant penstock_program. The replay program is merged into the module.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/ArgumentAttributes.h"
#include "dialects/Pipeline/ModelFiles.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Runtime/ActionTable.h"
#include "passes/Runtime/CallTable.h"
#include "passes/Runtime/DeviceFunctions.h"
#include "passes/Runtime/LaunchTable.h"
#include "passes/Runtime/Passes.h"
#include "passes/Runtime/RuntimeCalls.h"
#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace penstock {
#define GEN_PASS_DEF_CONVERTPIPELINETORUNTIME
#include "passes/Runtime/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

// The descriptors of all calls are in tables that devices share; a call says
// which one is meant, and where its operands are.

namespace {
/// Fills both tables.
class Collector {
public:
  Collector(ModuleOp root, CallTable &gemms, CallTable &convs)
      : root(root), symbols(root), gemms(gemms), convs(convs) {}

  /// Adds what the devices of a program run, and what they pack at the start.
  LogicalResult collect(ModuleOp program, CallTable::Of of);
  /// Adds what is in kernels that nothing calls.
  LogicalResult collectRest();

private:
  LogicalResult add(Operation *op, CallTable::Of of,
                    std::optional<int64_t> device);
  LogicalResult add(kernel::LibraryCallOpInterface call, CallTable::Of of,
                    std::optional<int64_t> device);
  LogicalResult add(Operation *op, kernel::PackingAttrInterface order,
                    CallTable::Of of, std::optional<int64_t> device);
  LogicalResult checkAlignment(kernel::LibraryCallOpInterface call,
                               ModuleOp program, int64_t device);
  CallTable &getTable(const CallDescriptor &descriptor) {
    return std::holds_alternative<penstock_gemm_descriptor>(descriptor.call)
               ? gemms
               : convs;
  }

  ModuleOp root;
  SymbolTable symbols;
  CallTable &gemms, &convs;
};
} // namespace

LogicalResult Collector::add(kernel::LibraryCallOpInterface call,
                             CallTable::Of of, std::optional<int64_t> device) {
  Attribute config = call.getConfigAttr();
  const Target *target = config ? Target::get(config) : nullptr;
  if (!target)
    return call.emitError("has no config: run pipeline-select-library first");
  std::optional<CallDescriptor> descriptor = target->describe(call);
  if (!descriptor)
    return call.emitError("the runtime has no place for it: it takes f32 "
                          "matrices with up to ")
           << PENSTOCK_MAX_BATCH_RANK
           << " batch dimensions, and convolutions with up to "
           << PENSTOCK_MAX_SPATIAL_RANK << " spatial ones";
  getTable(*descriptor).add(call, *descriptor, of, device);
  return success();
}

LogicalResult Collector::add(Operation *op, kernel::PackingAttrInterface order,
                             CallTable::Of of, std::optional<int64_t> device) {
  const Target *target = Target::get(order);
  std::optional<CallDescriptor> descriptor =
      target ? target->describe(order) : std::nullopt;
  if (!descriptor)
    return op->emitError("packs weights in an order that the runtime cannot "
                         "make: ")
           << order;
  getTable(*descriptor).add(order, *descriptor, of, device);
  return success();
}

LogicalResult Collector::add(Operation *op, CallTable::Of of,
                             std::optional<int64_t> device) {
  if (auto library = dyn_cast<kernel::LibraryCallOpInterface>(op))
    return add(library, of, device);
  if (auto pack = dyn_cast<kernel::PackOp>(op))
    return add(op, pack.getOrder(), of, device);
  return success();
}

/// Buffers are aligned to what the arena is.
LogicalResult Collector::checkAlignment(kernel::LibraryCallOpInterface call,
                                        ModuleOp program, int64_t device) {
  const Target *target = Target::get(call.getConfigAttr());
  int64_t needed = target->getAlignment(call);
  for (auto arena : program.getOps<ArenaOp>())
    if (static_cast<int64_t>(arena.getDevice()) == device &&
        static_cast<int64_t>(arena.getAlignment()) % needed)
      return call.emitError("has operands at multiples of ")
             << needed << " bytes, but the arena of device " << device
             << " is aligned to " << arena.getAlignment()
             << ": run pipeline-plan-memory with alignment=" << needed
             << " or more";
  return success();
}

LogicalResult Collector::collect(ModuleOp program, CallTable::Of of) {
  for (auto function : program.getOps<func::FuncOp>()) {
    auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    if (!device)
      continue;
    llvm::SmallSetVector<Operation *, 16> reached;
    reached.insert(function);
    for (size_t i = 0; i < reached.size(); ++i) {
      WalkResult result = reached[i]->walk([&](Operation *op) {
        // The kernels of a replay are those of the program.
        if (auto call = dyn_cast<func::CallOp>(op))
          if (auto callee =
                  symbols.lookup<func::FuncOp>(call.getCalleeAttr().getAttr()))
            reached.insert(callee);
        if (failed(add(op, of, device.getInt())))
          return WalkResult::interrupt();
        auto library = dyn_cast<kernel::LibraryCallOpInterface>(op);
        return WalkResult(
            library ? checkAlignment(library, program, device.getInt())
                    : success());
      });
      if (result.wasInterrupted())
        return failure();
    }
  }
  SymbolTable stages(program);
  for (auto variable : program.getOps<VariableOp>()) {
    auto order = variable->getAttrOfType<kernel::PackingAttrInterface>(
        kernel::kPackingAttr);
    if (!order)
      continue;
    if (failed(add(variable, order, of, std::nullopt)))
      return failure();
    FlatSymbolRefAttr name = variable.getStageAttr();
    auto stage = name ? stages.lookup<StageOp>(name.getAttr()) : StageOp();
    if (!stage)
      continue;
    for (int64_t device : stage.getDevices().value_or(ArrayRef<int64_t>()))
      if (failed(add(variable, order, of, device)))
        return failure();
  }
  return success();
}

LogicalResult Collector::collectRest() {
  return failure(root.walk([&](Operation *op) {
                       return WalkResult(
                           add(op, CallTable::Of::Program, std::nullopt));
                     })
                     .wasInterrupted());
}

/// Adds the library calls that each device makes, through the kernels that it
/// calls; of the program, and of its replay unless that is null.
static LogicalResult collectLibraryCalls(ModuleOp root, ModuleOp replay,
                                         CallTable &gemms, CallTable &convs) {
  Collector collector(root, gemms, convs);
  if (failed(collector.collect(root, CallTable::Of::Program)) ||
      failed(collector.collectRest()))
    return failure();
  return replay ? collector.collect(replay, CallTable::Of::Replay) : success();
}

/// The number of the descriptor, and the addresses of the operands; none for
/// a null value. A result says whether an epilogue is pending.
static void callLibrary(RuntimeCalls &runtime, Operation *op, StringRef name,
                        uint32_t number, ValueRange operands) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> arguments{RuntimeCalls::getDevice(op),
                               runtime.number(builder, loc, number)};
  for (Value buffer : operands)
    arguments.push_back(
        buffer
            ? runtime.getPointer(builder, loc, buffer)
            : LLVM::ZeroOp::create(builder, loc, runtime.pointer).getResult());
  if (op->getNumResults() == 0) {
    runtime.call(builder, loc, name, runtime.none, arguments);
  } else {
    Value pending = runtime.call(builder, loc, name, runtime.i32, arguments);
    Value zero = LLVM::ZeroOp::create(builder, loc, runtime.i32);
    op->getResult(0).replaceAllUsesWith(LLVM::ICmpOp::create(
        builder, loc, LLVM::ICmpPredicate::ne, pending, zero));
  }
  op->erase();
}

/// Puts a call of the runtime into the place of each.
static LogicalResult convertLibraryCalls(RuntimeCalls &runtime,
                                         const CallTable &gemms,
                                         const CallTable &convs) {
  return runtime.convertAll<kernel::PackOp, kernel::GemmOp, kernel::ConvOp>(
      [&](Operation *op) {
        if (auto pack = dyn_cast<kernel::PackOp>(op)) {
          kernel::PackingAttrInterface order = pack.getOrder();
          bool isProduct = gemms.contains(order);
          return callLibrary(
              runtime, op, isProduct ? "penstock_gemm" : "penstock_conv",
              isProduct ? gemms.getIndex(order) : convs.getIndex(order),
              {Value(), pack.getWeights(), pack.getPacked()});
        }
        Value packed = cast<kernel::LibraryCallOpInterface>(op).getPacked();
        if (auto gemm = dyn_cast<kernel::GemmOp>(op)) {
          SmallVector<Value> operands{
              gemm.getA(), packed ? packed : gemm.getB(), gemm.getC()};
          if (gemm.hasEpilogue())
            operands.push_back(gemm.getBias());
          return callLibrary(runtime, op,
                             gemm.hasEpilogue() ? "penstock_gemm_epilogue"
                                                : "penstock_gemm",
                             gemms.getIndex(gemm), operands);
        }
        auto conv = cast<kernel::ConvOp>(op);
        callLibrary(runtime, op, "penstock_conv", convs.getIndex(conv),
                    {conv.getInput(), packed ? packed : conv.getWeights(),
                     conv.getOutput()});
      });
}

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

    RuntimeCalls runtime(root);
    if (failed(launches.convert(runtime)) || failed(actions.convert(runtime)) ||
        failed(convertLibraryCalls(runtime, gemms, convs)))
      return failure();
    TaskRuns runs;
    runs.count(root, table);
    if (replay)
      runs.count(replay, replayTable);
    if (failed(convertDevices(runtime, table, runs, root, "")) ||
        (replay && failed(convertDevices(runtime, replayTable, runs, replay,
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
                               TaskRuns &runs, ModuleOp module,
                               StringRef prefix) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(kDeviceAttr))
        continue;
      std::string name = (prefix + function.getSymName()).str();
      // The new function takes the place, and often the name, of the old.
      function.setSymName(name + ".old");
      if (failed(convertDeviceFunction(runtime, table, runs, function, name)))
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

  /// Removes the rest but kernels, visible in this object only.
  void removeRest(ModuleOp root) {
    root->removeAttr(kModelAttr);
    root->removeAttr(kExternalDataAttr);
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
      changeArgAttrs(function, [](unsigned, NamedAttrList &attributes) {
        for (StringRef attr : {kIntoAttr, kOutAttr, kScratchAttr})
          attributes.erase(attr);
      });
    }
  }
};

} // namespace
