//===- LowerSchedule.cpp - Orders become functions ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes one function per device and schedule (DeviceBuilder.h) and lets the
// bufferized functions take the names of the originals. Tasks and schedules
// remain as names, tasks with their calls by position.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceBuilder.h"
#include "passes/Program/Devices/Storage.h"
#include "passes/Program/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINELOWERSCHEDULE
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

// A body becomes the list of its calls with the buffers that they get, read off
// the body and not off the device functions: the proof compares the two.

namespace {

class Stater {
public:
  Stater(TaskOp task, const Storage &storage)
      : task(task), storage(storage), context(task.getContext()) {}

  LogicalResult run();

private:
  LogicalResult addCall(func::CallOp call);
  FailureOr<Attribute> describe(Value value, AccessKind access);
  Attribute describeNumber(Value value);
  int64_t getField(const Buffer &buffer);

  TaskOp task;
  const Storage &storage;
  MLIRContext *context;
  SmallVector<Attribute> calls, puts;
};

} // namespace

/// A device that also receives has slots of their own for messages it sends.
int64_t Stater::getField(const Buffer &buffer) {
  auto channel = dyn_cast<ChannelOp>(buffer.symbol);
  if (!buffer.staging || !channel)
    return buffer.field;
  auto stage = storage.lookup<StageOp>(task, task.getStageAttr());
  bool hasBoth =
      stage && llvm::any_of(stage.getDevices().value_or(ArrayRef<int64_t>()),
                            [&](int64_t device) {
                              return storage.hasBothEnds(channel, device);
                            });
  return hasBoth ? getStagingField(channel) : buffer.field;
}

FailureOr<Attribute> Stater::describe(Value value, AccessKind access) {
  FailureOr<Buffer> buffer = storage.getBuffer(value);
  if (failed(buffer))
    return failure();
  std::optional<int64_t> lag;
  if (auto read = value.getDefiningOp<ReadOp>(); read && read.getLag())
    lag = static_cast<int64_t>(*read.getLag());
  return Attribute(OperandAttr::get(
      context, access,
      FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer->symbol)),
      getField(*buffer), lag));
}

Attribute Stater::describeNumber(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return UnitAttr::get(context);
  if (auto number = dyn_cast<HyperparameterOp>(op))
    return number.getNameAttr();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constant.getValue();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (!isa<TensorType>(operand.getType()))
      operands.push_back(describeNumber(operand));
  Attribute by = StringAttr::get(context, op->getName().getStringRef());
  auto attributes = DictionaryAttr::get(context);
  if (auto call = dyn_cast<func::CallOp>(op))
    by = call.getCalleeAttr();
  else if (auto own =
               dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    attributes = own;
  return ComputedAttr::get(context, by, cast<OpResult>(value).getResultNumber(),
                           value.getType(), ArrayAttr::get(context, operands),
                           attributes);
}

/// As bufferized: operands, and then results that are in none of their places.
LogicalResult Stater::addCall(func::CallOp call) {
  auto callee = storage.lookup<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return failure();
  SmallVector<Attribute> terms;
  llvm::SmallDenseSet<int64_t> inPlace;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (!isa<TensorType>(operand.getType())) {
      terms.push_back(describeNumber(operand));
      continue;
    }
    auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr);
    if (into)
      inPlace.insert(into.getInt());
    FailureOr<Attribute> term =
        describe(operand, into ? AccessKind::Update : AccessKind::Read);
    if (failed(term))
      return failure();
    terms.push_back(*term);
  }
  for (OpResult result : call.getResults()) {
    if (!isa<TensorType>(result.getType()) ||
        inPlace.contains(result.getResultNumber()))
      continue;
    FailureOr<Attribute> term = describe(result, AccessKind::Write);
    if (failed(term))
      return failure();
    terms.push_back(*term);
  }
  calls.push_back(CallAttr::get(context, call.getCalleeAttr(),
                                ArrayAttr::get(context, terms)));
  return success();
}

LogicalResult Stater::run() {
  for (Operation &op : task.getBody().front()) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(addCall(call)))
        return failure();
      continue;
    }
    auto put = dyn_cast<PutOp>(op);
    auto channel = put ? storage.lookup<ChannelOp>(put, put.getChannelAttr())
                       : ChannelOp();
    if (!channel || !storage.isSent(channel))
      continue;
    FailureOr<Buffer> buffer = storage.getSendBuffer(channel);
    if (failed(buffer))
      return failure();
    puts.push_back(PutAttr::get(
        context, put.getChannelAttr(),
        FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer->symbol)),
        getField(*buffer)));
  }
  task.setCallsAttr(ArrayAttr::get(context, calls));
  if (!puts.empty())
    task.setPutsAttr(ArrayAttr::get(context, puts));
  return success();
}

/// Notes on a task what its body calls and puts; fails, with a diagnostic, on
/// values without storage.
static LogicalResult stateCalls(TaskOp task, const Storage &storage) {
  return Stater(task, storage).run();
}

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
    SymbolTableCollection symbols;
    for (ModuleOp module : modules)
      if (failed(lowerOrders(root, module, symbols)))
        return signalPassFailure();
    for (ModuleOp module : llvm::drop_begin(modules))
      retypeDeclarations(root, module, symbols);
    replaceFunctions(root);
  }

  LogicalResult lowerOrders(ModuleOp root, ModuleOp module,
                            SymbolTableCollection &symbols) {
    for (auto schedule : module.getOps<ScheduleOp>()) {
      if (schedule.isBodyless())
        continue;
      FailureOr<Storage> storage = Storage::get(schedule);
      if (failed(storage))
        return failure();
      storage->markEnds();
      for (auto order : schedule.getBody().getOps<OrderOp>())
        if (failed(DeviceBuilder(root, *storage, schedule, symbols).run(order)))
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
  void retypeDeclarations(ModuleOp root, ModuleOp module,
                          SymbolTableCollection &symbols) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function.isDeclaration())
        continue;
      auto kernel = symbols.lookupSymbolIn<func::FuncOp>(
          root, StringAttr::get(&getContext(),
                                function.getSymName() + kKernelSuffix));
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
