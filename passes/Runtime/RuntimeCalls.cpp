//===- RuntimeCalls.cpp - The runtime as generated code sees it -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every function and table is declared once, where it is first needed.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

RuntimeCalls::RuntimeCalls(ModuleOp root)
    : root(root), pointer(LLVM::LLVMPointerType::get(root.getContext())),
      none(LLVM::LLVMVoidType::get(root.getContext())),
      i32(IntegerType::get(root.getContext(), 32)),
      i64(IntegerType::get(root.getContext(), 64)),
      f64(Float64Type::get(root.getContext())) {}

Value RuntimeCalls::call(OpBuilder &builder, Location loc, StringRef name,
                         Type result, ValueRange operands) {
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

Value RuntimeCalls::getPointer(OpBuilder &builder, Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  Value address = arith::IndexCastOp::create(builder, loc, i64, base);
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  bool known = succeeded(type.getStridesAndOffset(strides, offset));
  Value elements;
  if (!known || ShapedType::isDynamic(offset))
    elements = arith::IndexCastOp::create(
        builder, loc, i64,
        memref::ExtractStridedMetadataOp::create(builder, loc, buffer)
            .getOffset());
  else if (offset)
    elements = word(builder, loc, offset);
  if (elements) {
    Value size = word(builder, loc, type.getElementTypeBitWidth() / 8);
    address =
        LLVM::AddOp::create(builder, loc, address,
                            LLVM::MulOp::create(builder, loc, elements, size));
  }
  return LLVM::IntToPtrOp::create(builder, loc, pointer, address);
}

Value RuntimeCalls::number(OpBuilder &builder, Location loc,
                           int64_t value) const {
  return LLVM::ConstantOp::create(
      builder, loc, i32,
      builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value RuntimeCalls::word(OpBuilder &builder, Location loc,
                         int64_t value) const {
  return LLVM::ConstantOp::create(builder, loc, i64,
                                  builder.getI64IntegerAttr(value));
}

Value RuntimeCalls::makeBuffer(OpBuilder &builder, Location loc,
                               MemRefType type, Value address) const {
  return UnrealizedConversionCastOp::create(builder, loc, type, address)
      .getResult(0);
}

Value RuntimeCalls::getDevice(Operation *op) {
  return op->getParentOfType<func::FuncOp>().getArgument(0);
}

LogicalResult RuntimeCalls::checkDevice(Operation *op) const {
  auto function = op->getParentOfType<func::FuncOp>();
  if (function && function.getNumArguments() &&
      function.getArgument(0).getType() == pointer)
    return success();
  return op->emitError("needs the device as first argument of its function: "
                       "run pipeline-add-device-argument first");
}

LLVM::GlobalOp RuntimeCalls::getTable(DenseI64ArrayAttr numbers) {
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
