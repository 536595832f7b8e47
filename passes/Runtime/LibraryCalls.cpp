//===- LibraryCalls.cpp - Products and convolutions of a library ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptors of all calls are in tables that devices share; a call says
// which one is meant, and where its operands are.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/LibraryCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

LogicalResult penstock::collectLibraryCalls(ModuleOp root, GemmTable &gemms,
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
        if (auto prepack = dyn_cast<nn::PrepackWeightsOp>(op))
          return WalkResult(convs.add(op, prepack.getPrepacking()));
        if (auto pack = dyn_cast<PackPanelsOp>(op))
          gemms.add(pack.getPanels());
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
    if (auto pack = dyn_cast<PackPanelsOp>(op))
      gemms.add(pack.getPanels());
    if (auto variable = dyn_cast<VariableOp>(op)) {
      Attribute prepacking = variable->getAttr(kPrepackingAttr);
      if (auto panels = dyn_cast_or_null<PanelsAttr>(prepacking))
        gemms.add(panels);
      else if (prepacking)
        return WalkResult(convs.add(op, cast<nn::PrepackingAttr>(prepacking)));
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static constexpr StringLiteral kNeedsDevice =
    "needs the device as first argument of its function: run "
    "pipeline-lower-kernels-cpu first";

static bool hasDevice(func::FuncOp function, const RuntimeCalls &runtime) {
  return function && function.getNumArguments() &&
         function.getArgument(0).getType() == runtime.pointer;
}

/// The address of the first element, the offset of a view included.
static Value getPointer(OpBuilder &builder, Location loc, RuntimeCalls &runtime,
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
    address =
        LLVM::AddOp::create(builder, loc, address,
                            LLVM::MulOp::create(builder, loc, elements, size));
  }
  return LLVM::IntToPtrOp::create(builder, loc, runtime.pointer, address);
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
            ? getPointer(builder, loc, runtime, buffer)
            : LLVM::ZeroOp::create(builder, loc, runtime.pointer).getResult());
  runtime.call(builder, loc, name, runtime.none, arguments);
  op->erase();
}

static LogicalResult convertGemms(RuntimeCalls &runtime,
                                  const GemmTable &gemms) {
  SmallVector<Operation *> ops;
  runtime.root.walk([&](Operation *op) {
    if (isa<GemmOp, PackPanelsOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (!hasDevice(op->getParentOfType<func::FuncOp>(), runtime))
      return op->emitError(kNeedsDevice);
    if (auto pack = dyn_cast<PackPanelsOp>(op)) {
      callLibrary(runtime, op, "penstock_gemm",
                  gemms.getIndex(pack.getPanels()),
                  {Value(), pack.getWeights(), pack.getPrepacked()});
      continue;
    }
    auto gemm = cast<GemmOp>(op);
    callLibrary(runtime, op, "penstock_gemm", gemms.getIndex(gemm),
                {gemm.getA(), gemm.getB(), gemm.getC()});
  }
  return success();
}

static LogicalResult convertConvolutions(RuntimeCalls &runtime,
                                         const ConvolutionTable &convs) {
  SmallVector<Operation *> ops;
  runtime.root.walk([&](Operation *op) {
    if (nn::Convolution::match(op) || isa<nn::PrepackWeightsOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (!hasDevice(op->getParentOfType<func::FuncOp>(), runtime))
      return op->emitError(kNeedsDevice);
    if (auto prepack = dyn_cast<nn::PrepackWeightsOp>(op)) {
      callLibrary(runtime, op, "penstock_conv",
                  convs.getIndex(prepack.getPrepacking()),
                  {Value(), prepack.getWeights(), prepack.getPrepacked()});
      continue;
    }
    nn::Convolution conv = *nn::Convolution::match(op);
    callLibrary(runtime, op, "penstock_conv", convs.getIndex(op),
                {conv.input, conv.prepacked ? conv.prepacked : conv.weights,
                 conv.output});
  }
  return success();
}

LogicalResult penstock::convertLibraryCalls(RuntimeCalls &runtime,
                                            const GemmTable &gemms,
                                            const ConvolutionTable &convs) {
  return failure(failed(convertGemms(runtime, gemms)) ||
                 failed(convertConvolutions(runtime, convs)));
}
