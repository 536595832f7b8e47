//===- LibraryCalls.cpp - Products and convolutions of a library ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors of all calls are in tables that devices share; a call says
// which one is meant, and where its operands are.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/LibraryCalls.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
/// Fills both tables.
class Collector {
public:
  Collector(ModuleOp root, CallTable &gemms, CallTable &convs)
      : root(root), gemms(gemms), convs(convs) {}

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
          if (auto callee = root.lookupSymbol<func::FuncOp>(call.getCallee()))
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
  for (auto variable : program.getOps<VariableOp>()) {
    auto order = variable->getAttrOfType<kernel::PackingAttrInterface>(
        kernel::kPackingAttr);
    if (!order)
      continue;
    if (failed(add(variable, order, of, std::nullopt)))
      return failure();
    FlatSymbolRefAttr name = variable.getStageAttr();
    auto stage = name ? program.lookupSymbol<StageOp>(name) : StageOp();
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

LogicalResult penstock::collectLibraryCalls(ModuleOp root, ModuleOp replay,
                                            CallTable &gemms,
                                            CallTable &convs) {
  Collector collector(root, gemms, convs);
  if (failed(collector.collect(root, CallTable::Of::Program)) ||
      failed(collector.collectRest()))
    return failure();
  return replay ? collector.collect(replay, CallTable::Of::Replay) : success();
}

/// The number of the descriptor, and the addresses of the operands; none for
/// a null value.
static void callLibrary(RuntimeCalls &runtime, Operation *op, StringRef name,
                        uint32_t number, ValueRange operands) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> arguments{
      op->getParentOfType<func::FuncOp>().getArgument(0),
      LLVM::ConstantOp::create(builder, loc, runtime.i32,
                               builder.getI32IntegerAttr(number))};
  for (Value buffer : operands)
    arguments.push_back(
        buffer
            ? runtime.getPointer(builder, loc, buffer)
            : LLVM::ZeroOp::create(builder, loc, runtime.pointer).getResult());
  runtime.call(builder, loc, name, runtime.none, arguments);
  op->erase();
}

LogicalResult penstock::convertLibraryCalls(RuntimeCalls &runtime,
                                            const CallTable &gemms,
                                            const CallTable &convs) {
  SmallVector<Operation *> ops;
  runtime.root.walk([&](Operation *op) {
    if (isa<kernel::LibraryCallOpInterface, kernel::PackOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (failed(runtime.checkDevice(op)))
      return failure();
    if (auto pack = dyn_cast<kernel::PackOp>(op)) {
      kernel::PackingAttrInterface order = pack.getOrder();
      bool isProduct = gemms.contains(order);
      callLibrary(runtime, op, isProduct ? "penstock_gemm" : "penstock_conv",
                  isProduct ? gemms.getIndex(order) : convs.getIndex(order),
                  {Value(), pack.getWeights(), pack.getPacked()});
      continue;
    }
    Value packed = cast<kernel::LibraryCallOpInterface>(op).getPacked();
    if (auto gemm = dyn_cast<kernel::GemmOp>(op))
      callLibrary(runtime, op, "penstock_gemm", gemms.getIndex(gemm),
                  {gemm.getA(), packed ? packed : gemm.getB(), gemm.getC()});
    else if (auto conv = dyn_cast<kernel::ConvOp>(op))
      callLibrary(runtime, op, "penstock_conv", convs.getIndex(conv),
                  {conv.getInput(), packed ? packed : conv.getWeights(),
                   conv.getOutput()});
  }
  return success();
}
