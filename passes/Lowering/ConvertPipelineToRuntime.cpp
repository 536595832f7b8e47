//===- ConvertPipelineToRuntime.cpp - Device programs call the ABI --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots become addresses in the arena, transfers and library products calls of
// the runtime, and variables, channels, tasks and schedules the tables of the
// constant penstock_program. The replay program is merged into the module.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/Descriptor.h"
#include "passes/Lowering/Passes.h"
#include "passes/Program/Places.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace penstock {
#define GEN_PASS_DEF_CONVERTPIPELINETORUNTIME
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

constexpr StringLiteral kProgram = "penstock_program";
constexpr StringLiteral kReplay = "replay.penstock_program";
constexpr StringLiteral kReplayPrefix = "replay.";

/// Declarations of the runtime, in the top-level module.
class Runtime {
public:
  explicit Runtime(ModuleOp root)
      : root(root), context(root.getContext()),
        pointer(LLVM::LLVMPointerType::get(context)),
        none(LLVM::LLVMVoidType::get(context)),
        i32(IntegerType::get(context, 32)), i64(IntegerType::get(context, 64)),
        f64(Float64Type::get(context)) {}

  /// Calls `name`, whose type follows from the operands.
  Value call(OpBuilder &builder, Location loc, StringRef name, Type result,
             ValueRange operands) {
    auto function = root.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function) {
      OpBuilder atStart = OpBuilder::atBlockBegin(root.getBody());
      SmallVector<Type> types(operands.getTypes());
      function =
          LLVM::LLVMFuncOp::create(atStart, root.getLoc(), name,
                                   LLVM::LLVMFunctionType::get(result, types));
    }
    auto call = LLVM::CallOp::create(builder, loc, function, operands);
    return call.getNumResults() ? call.getResult() : Value();
  }

  /// A constant table of numbers, one for each content.
  LLVM::GlobalOp getTable(DenseI64ArrayAttr numbers) {
    LLVM::GlobalOp &table = tables[numbers];
    if (!table) {
      OpBuilder atStart = OpBuilder::atBlockBegin(root.getBody());
      auto type = RankedTensorType::get({numbers.size()}, i64);
      std::string name = "pipeline.places";
      while (root.lookupSymbol(name))
        name = "pipeline.places." + std::to_string(tableCount++);
      table = LLVM::GlobalOp::create(
          atStart, root.getLoc(), LLVM::LLVMArrayType::get(i64, numbers.size()),
          /*isConstant=*/true, LLVM::Linkage::Internal, name,
          DenseIntElementsAttr::get(type, numbers.asArrayRef()));
    }
    return table;
  }

  ModuleOp root;
  MLIRContext *context;
  Type pointer, none, i32, i64, f64;

private:
  llvm::DenseMap<Attribute, LLVM::GlobalOp> tables;
  unsigned tableCount = 0;
};

/// Converts the body of one device function, and the function itself.
class DeviceConverter {
public:
  DeviceConverter(Runtime &runtime, const ProgramTable &table,
                  LLVMTypeConverter &types, func::FuncOp function)
      : runtime(runtime), table(table), types(types), function(function),
        builder(function.getContext()) {}

  LogicalResult convert(StringRef name);

private:
  void convertOp(Operation *op);
  Value getAddress(SlotOp slot);
  void replaceBuffer(Operation *op, Value address);
  LogicalResult passDevice(func::CallOp call);
  Value getCells(StartAllReduceOp sum);
  std::pair<Value, Value> getEndpoint(StringRef channel, Value index);

  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, runtime.i64, index);
  }
  Value number(uint32_t value) {
    return LLVM::ConstantOp::create(builder, loc, runtime.i32,
                                    builder.getI32IntegerAttr(value));
  }
  Value offset(Value address, Value bytes) {
    return LLVM::GEPOp::create(builder, loc, runtime.pointer,
                               builder.getI8Type(), address,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }

  Runtime &runtime;
  const ProgramTable &table;
  LLVMTypeConverter &types;
  func::FuncOp function;
  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
  Value device, arena;
  bool evaluates = false;
  llvm::DenseMap<Value, Value> addresses;
};

} // namespace

//===----------------------------------------------------------------------===//
// Device functions
//===----------------------------------------------------------------------===//

Value DeviceConverter::getAddress(SlotOp slot) {
  Value bytes = LLVM::ConstantOp::create(
      builder, loc, runtime.i64,
      builder.getI64IntegerAttr(slot.getAt().value_or(0)));
  uint64_t ring = slot.getRing().value_or(1);
  if (ring > 1) {
    Value turn = arith::RemUIOp::create(
        builder, loc, slot.getNumber(),
        arith::ConstantIndexOp::create(builder, loc, ring));
    if (auto places = slot->getAttrOfType<DenseI64ArrayAttr>(kPlacesAttr)) {
      Value table =
          LLVM::AddressOfOp::create(builder, loc, runtime.getTable(places));
      Value entry =
          LLVM::GEPOp::create(builder, loc, runtime.pointer, runtime.i64, table,
                              ArrayRef<LLVM::GEPArg>{toI64(turn)});
      return offset(arena,
                    LLVM::LoadOp::create(builder, loc, runtime.i64, entry));
    }
    Value stride = LLVM::ConstantOp::create(
        builder, loc, runtime.i64,
        builder.getI64IntegerAttr(slot.getStride().value_or(0)));
    Value shift = LLVM::MulOp::create(builder, loc, toI64(turn), stride);
    bytes = LLVM::AddOp::create(builder, loc, bytes, shift);
  }
  return offset(arena, bytes);
}

/// Kernels take memrefs, at this point; the runtime takes addresses.
void DeviceConverter::replaceBuffer(Operation *op, Value address) {
  Value buffer = op->getResult(0);
  addresses[buffer] = address;
  if (llvm::any_of(buffer.getUsers(), llvm::IsaPred<func::CallOp>)) {
    auto type = cast<MemRefType>(buffer.getType());
    Value descriptor =
        MemRefDescriptor::fromStaticShape(builder, loc, types, type, address);
    Value memref =
        UnrealizedConversionCastOp::create(builder, loc, type, descriptor)
            .getResult(0);
    buffer.replaceUsesWithIf(memref, [](OpOperand &use) {
      return isa<func::CallOp>(use.getOwner());
    });
  }
}

/// The addresses of the buffers, in an array on the stack of the function.
Value DeviceConverter::getCells(StartAllReduceOp sum) {
  Block &entry = function.getBody().front();
  OpBuilder atStart = OpBuilder::atBlockBegin(&entry);
  Value count = LLVM::ConstantOp::create(
      atStart, loc, runtime.i32,
      atStart.getI32IntegerAttr(sum.getBuffers().size()));
  Value cells = LLVM::AllocaOp::create(atStart, loc, runtime.pointer,
                                       runtime.pointer, count);
  for (auto [index, buffer] : llvm::enumerate(sum.getBuffers())) {
    Value cell = LLVM::GEPOp::create(
        builder, loc, runtime.pointer, runtime.pointer, cells,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, addresses.lookup(buffer), cell);
  }
  return cells;
}

/// Of a channel between replicas: the one that message n goes through, and its
/// number there.
std::pair<Value, Value> DeviceConverter::getEndpoint(StringRef channel,
                                                     Value index) {
  uint32_t first = table.getEndpoint(channel);
  int64_t ways = table.getWays(channel);
  Value base = number(evaluates && ways > 1 ? first + ways : first);
  Value n = toI64(index);
  if (ways == 1 || evaluates)
    return {base, n};
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, runtime.i64,
                                    builder.getI64IntegerAttr(value));
  };
  // What is awaited may have a small negative number, and keeps it.
  constexpr int64_t kTurns = int64_t(1) << 32;
  Value positive =
      LLVM::AddOp::create(builder, loc, n, constant(kTurns * ways));
  Value way = LLVM::URemOp::create(builder, loc, positive, constant(ways));
  Value turn = LLVM::UDivOp::create(builder, loc, positive, constant(ways));
  Value narrow = LLVM::TruncOp::create(builder, loc, runtime.i32, way);
  Value endpoint = LLVM::AddOp::create(builder, loc, base, narrow);
  Value message = LLVM::SubOp::create(builder, loc, turn, constant(kTurns));
  return {endpoint, message};
}

void DeviceConverter::convertOp(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  auto transfer = [&](StringRef name, StringRef channel, Value n,
                      Value buffer) {
    auto [endpoint, message] = getEndpoint(channel, n);
    SmallVector<Value> operands{device, endpoint, message};
    if (buffer)
      operands.push_back(addresses.lookup(buffer));
    runtime.call(builder, loc, name, runtime.none, operands);
  };
  if (auto slot = dyn_cast<SlotOp>(op))
    return replaceBuffer(op, getAddress(slot));
  if (auto scratch = dyn_cast<ScratchOp>(op)) {
    Value bytes = LLVM::ConstantOp::create(
        builder, loc, runtime.i64,
        builder.getI64IntegerAttr(scratch.getAt().value_or(0)));
    return replaceBuffer(op, offset(arena, bytes));
  }
  if (auto recv = dyn_cast<StartRecvOp>(op))
    return transfer("penstock_recv", recv.getChannel(), recv.getNumber(),
                    recv.getBuffer());
  if (auto send = dyn_cast<StartSendOp>(op))
    return transfer("penstock_send", send.getChannel(), send.getNumber(),
                    send.getBuffer());
  if (auto await = dyn_cast<AwaitOp>(op))
    return transfer("penstock_await", await.getChannel(), await.getNumber(),
                    Value());
  if (auto sum = dyn_cast<StartAllReduceOp>(op)) {
    runtime.call(builder, loc, "penstock_all_reduce", runtime.none,
                 {device, number(table.getGroup(sum.getGroup())),
                  toI64(sum.getNumber()), getCells(sum)});
    return;
  }
  if (auto mark = dyn_cast<MarkOp>(op)) {
    runtime.call(builder, loc, "penstock_mark", runtime.none,
                 {device, number(table.getTask(mark.getTask())),
                  toI64(mark.getNumber())});
    return;
  }
  auto parameter = cast<HyperparameterOp>(op);
  Value value = runtime.call(
      builder, loc, "penstock_hyperparameter", runtime.f64,
      {device, number(table.getHyperparameter(parameter.getName()))});
  if (value.getType() != parameter.getType())
    value = arith::TruncFOp::create(builder, loc, parameter.getType(), value);
  parameter.replaceAllUsesWith(value);
}

/// Kernels have taken the device as an additional first argument.
LogicalResult DeviceConverter::passDevice(func::CallOp call) {
  auto callee = runtime.root.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!callee)
    return call.emitError() << "calls " << call.getCalleeAttr()
                            << ", which the program does not have";
  bool wants = callee.getNumArguments() &&
               callee.getArgumentTypes().front() == runtime.pointer;
  bool has =
      call.getNumOperands() && call.getOperand(0).getType() == runtime.pointer;
  if (wants && !has)
    call->insertOperands(0, device);
  return success();
}

LogicalResult DeviceConverter::convert(StringRef name) {
  if (auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr)) {
    auto schedule =
        SymbolTable::lookupNearestSymbolFrom<ScheduleOp>(function, name);
    evaluates = schedule && schedule.getRole() != "train";
  }
  Block &entry = function.getBody().front();
  if (entry.getArgument(0).getType() != runtime.pointer)
    entry.insertArgument(0u, runtime.pointer, function.getLoc());
  Type index = builder.getIndexType();
  // Who does not ask which version is the newest is told all the same.
  if (entry.getNumArguments() == 3)
    entry.addArgument(index, function.getLoc());
  if (entry.getNumArguments() != 4 ||
      llvm::any_of(llvm::drop_begin(entry.getArgumentTypes()),
                   [&](Type type) { return type != index; }))
    return function.emitError(
        "the function of a device takes the first update "
        "and their number, and perhaps the newest version");
  device = entry.getArgument(0);
  loc = function.getLoc();
  builder.setInsertionPointToStart(&entry);
  for (unsigned i : {1u, 2u, 3u}) {
    BlockArgument argument = entry.getArgument(i);
    auto cast = arith::IndexCastOp::create(builder, loc, index, argument);
    argument.replaceAllUsesExcept(cast, cast);
    argument.setType(runtime.i64);
  }
  arena =
      runtime.call(builder, loc, "penstock_arena", runtime.pointer, {device});

  SmallVector<Operation *> ops;
  WalkResult result = function.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      return failed(passDevice(call)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
    if (isa<SlotOp, ScratchOp, StartRecvOp, StartSendOp, StartAllReduceOp,
            AwaitOp, MarkOp, HyperparameterOp>(op))
      ops.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (Operation *op : ops)
    convertOp(op);
  for (Operation *op : llvm::reverse(ops))
    op->erase();

  auto type = LLVM::LLVMFunctionType::get(
      runtime.none, {runtime.pointer, runtime.i64, runtime.i64, runtime.i64});
  OpBuilder atEnd = OpBuilder::atBlockEnd(runtime.root.getBody());
  auto converted = LLVM::LLVMFuncOp::create(atEnd, function.getLoc(), name,
                                            type, LLVM::Linkage::Internal);
  converted.getBody().takeBody(function.getBody());
  for (Block &block : converted.getBody()) {
    if (auto exit = dyn_cast<func::ReturnOp>(block.getTerminator())) {
      builder.setInsertionPoint(exit);
      LLVM::ReturnOp::create(builder, exit.getLoc(), ValueRange());
      exit.erase();
    }
  }
  function.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

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
    GemmTable gemms;
    ConvolutionTable convs(root);
    if (failed(files.collect(root)) || failed(collectCalls(root, gemms, convs)))
      return failure();

    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(&getContext(), options);
    Runtime runtime(root);
    if (failed(convertGemms(runtime, gemms)) ||
        failed(convertConvolutions(runtime, convs)) ||
        failed(convertDevices(runtime, table, types, root, "")) ||
        (replay && failed(convertDevices(runtime, replayTable, types, replay,
                                         kReplayPrefix))))
      return failure();
    convertRate(runtime, table);

    ProgramTexts texts{cpu, features, method, schedule, plan};
    ConstantBuilder constants(root);
    if (replay && failed(replayTable.emit(constants, kReplay, kReplayPrefix,
                                          files, gemms, convs, texts, "")))
      return failure();
    if (failed(table.emit(constants, kProgram, "", files, gemms, convs, texts,
                          replay ? kReplay : "")))
      return failure();
    if (replay)
      replay.erase();
    removeRest(root);
    return success();
  }

  /// Which library calls each device makes, through the kernels that it calls.
  LogicalResult collectCalls(ModuleOp root, GemmTable &gemms,
                             ConvolutionTable &convs) {
    for (auto function : root.getOps<func::FuncOp>()) {
      auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
      if (!device)
        continue;
      llvm::SmallSetVector<Operation *, 16> reached;
      reached.insert(function);
      for (size_t i = 0; i < reached.size(); ++i) {
        WalkResult result = reached[i]->walk([&](Operation *op) {
          if (auto gemm = dyn_cast<GemmOp>(op))
            if (failed(gemms.add(gemm, device.getInt())))
              return WalkResult::interrupt();
          if (nn::Convolution::match(op))
            return WalkResult(convs.add(op, device.getInt()));
          if (auto call = dyn_cast<func::CallOp>(op))
            if (auto callee = root.lookupSymbol<func::FuncOp>(call.getCallee()))
              reached.insert(callee);
          return WalkResult::advance();
        });
        if (result.wasInterrupted())
          return failure();
      }
    }
    // Kernels that nothing calls may hold some, too.
    WalkResult result = root.walk([&](Operation *op) {
      if (auto gemm = dyn_cast<GemmOp>(op))
        return WalkResult(gemms.addUnused(gemm));
      if (nn::Convolution::match(op))
        return WalkResult(convs.add(op, std::nullopt));
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult convertGemms(Runtime &runtime, const GemmTable &gemms) {
    SmallVector<GemmOp> ops;
    runtime.root.walk([&](GemmOp gemm) { ops.push_back(gemm); });
    for (GemmOp gemm : ops) {
      auto function = gemm->getParentOfType<func::FuncOp>();
      if (!hasDevice(function, runtime))
        return gemm.emitError(kNeedsDevice);
      OpBuilder builder(gemm);
      Location loc = gemm.getLoc();
      SmallVector<Value> operands{
          function.getArgument(0),
          LLVM::ConstantOp::create(
              builder, loc, runtime.i32,
              builder.getI32IntegerAttr(gemms.getIndex(gemm)))};
      for (Value buffer : {gemm.getA(), gemm.getB(), gemm.getC()})
        operands.push_back(getPointer(builder, loc, runtime, buffer));
      runtime.call(builder, loc, "penstock_gemm", runtime.none, operands);
      gemm.erase();
    }
    return success();
  }

  LogicalResult convertConvolutions(Runtime &runtime,
                                    const ConvolutionTable &convs) {
    SmallVector<Operation *> ops;
    runtime.root.walk([&](Operation *op) {
      if (nn::Convolution::match(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto function = op->getParentOfType<func::FuncOp>();
      if (!hasDevice(function, runtime))
        return op->emitError(kNeedsDevice);
      nn::Convolution conv = *nn::Convolution::match(op);
      OpBuilder builder(op);
      Location loc = op->getLoc();
      SmallVector<Value> operands{
          function.getArgument(0),
          LLVM::ConstantOp::create(
              builder, loc, runtime.i32,
              builder.getI32IntegerAttr(convs.getIndex(op)))};
      for (Value buffer : {conv.input, conv.weights, conv.output})
        operands.push_back(getPointer(builder, loc, runtime, buffer));
      runtime.call(builder, loc, "penstock_conv", runtime.none, operands);
      op->erase();
    }
    return success();
  }

  static constexpr llvm::StringLiteral kNeedsDevice =
      "needs the device as first argument of its function: run "
      "pipeline-lower-kernels-cpu first";

  static bool hasDevice(func::FuncOp function, const Runtime &runtime) {
    return function && function.getNumArguments() &&
           function.getArgument(0).getType() == runtime.pointer;
  }

  /// The address of the first element, the offset of a view included.
  Value getPointer(OpBuilder &builder, Location loc, Runtime &runtime,
                   Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    Value base =
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
    Value address = arith::IndexCastOp::create(builder, loc, runtime.i64, base);
    int64_t offset = 0;
    SmallVector<int64_t> strides;
    bool known = succeeded(type.getStridesAndOffset(strides, offset));
    Value elements;
    if (!known || ShapedType::isDynamic(offset))
      elements = arith::IndexCastOp::create(
          builder, loc, runtime.i64,
          memref::ExtractStridedMetadataOp::create(builder, loc, buffer)
              .getOffset());
    else if (offset)
      elements = LLVM::ConstantOp::create(builder, loc, runtime.i64,
                                          builder.getI64IntegerAttr(offset));
    if (elements) {
      Value size = LLVM::ConstantOp::create(
          builder, loc, runtime.i64,
          builder.getI64IntegerAttr(type.getElementTypeBitWidth() / 8));
      address = LLVM::AddOp::create(
          builder, loc, address,
          LLVM::MulOp::create(builder, loc, elements, size));
    }
    return LLVM::IntToPtrOp::create(builder, loc, runtime.pointer, address);
  }

  LogicalResult convertDevices(Runtime &runtime, const ProgramTable &table,
                               LLVMTypeConverter &types, ModuleOp module,
                               StringRef prefix) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(kDeviceAttr))
        continue;
      std::string name = (prefix + function.getSymName()).str();
      // The new function takes the place, and often the name, of the old.
      function.setSymName(name + ".old");
      if (failed(
              DeviceConverter(runtime, table, types, function).convert(name)))
        return failure();
    }
    return success();
  }

  /// The tables can only name LLVM functions.
  void convertRate(Runtime &runtime, const ProgramTable &table) {
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
      if (isa<PipelineDialect>(op.getDialect())) {
        op.erase();
        continue;
      }
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function)
        continue;
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
