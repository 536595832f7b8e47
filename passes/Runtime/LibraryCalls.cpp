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
  Collector(CallTable &gemms, CallTable &convs) : gemms(gemms), convs(convs) {}

  LogicalResult add(kernel::LibraryCallOpInterface call,
                    std::optional<int64_t> device) {
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
    getTable(*descriptor).add(call, *descriptor, device);
    return success();
  }

  LogicalResult add(Operation *op, kernel::PackingAttrInterface order) {
    const Target *target = Target::get(order);
    std::optional<CallDescriptor> descriptor =
        target ? target->describe(order) : std::nullopt;
    if (!descriptor)
      return op->emitError("packs weights in an order that the runtime cannot "
                           "make: ")
             << order;
    getTable(*descriptor).add(order, *descriptor);
    return success();
  }

private:
  CallTable &getTable(const CallDescriptor &descriptor) {
    return std::holds_alternative<penstock_gemm_descriptor>(descriptor.call)
               ? gemms
               : convs;
  }

  CallTable &gemms, &convs;
};
} // namespace

LogicalResult penstock::collectLibraryCalls(ModuleOp root, CallTable &gemms,
                                            CallTable &convs) {
  Collector collector(gemms, convs);
  for (auto function : root.getOps<func::FuncOp>()) {
    auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    if (!device)
      continue;
    llvm::SmallSetVector<Operation *, 16> reached;
    reached.insert(function);
    for (size_t i = 0; i < reached.size(); ++i) {
      WalkResult result = reached[i]->walk([&](Operation *op) {
        if (auto library = dyn_cast<kernel::LibraryCallOpInterface>(op))
          return WalkResult(collector.add(library, device.getInt()));
        if (auto pack = dyn_cast<kernel::PackOp>(op))
          return WalkResult(collector.add(op, pack.getOrder()));
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
    if (auto library = dyn_cast<kernel::LibraryCallOpInterface>(op))
      return WalkResult(collector.add(library, std::nullopt));
    if (auto pack = dyn_cast<kernel::PackOp>(op))
      return WalkResult(collector.add(op, pack.getOrder()));
    if (isa<VariableOp>(op))
      if (auto order = op->getAttrOfType<kernel::PackingAttrInterface>(
              kernel::kPackingAttr))
        return WalkResult(collector.add(op, order));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
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
