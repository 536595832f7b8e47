//===- LaunchTable.cpp - The kernels that the host starts -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters go through an array of words on the stack of the caller.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/LaunchTable.h"

#include "passes/Runtime/AbiStructs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

static int64_t getBytes(MemRefType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

LogicalResult LaunchTable::collect(ModuleOp root) {
  WalkResult result = root.walk([&](kernel::LaunchOp launch) {
    Kernel kernel = {llvm::to_vector<3>(launch.getGrid()),
                     llvm::to_vector<3>(launch.getBlock()),
                     launch.getParameters().size()};
    auto [known, isNew] = kernels.insert({launch.getKernelAttr(), kernel});
    const Kernel &first = known->second;
    if (!isNew && (first.grid != kernel.grid || first.block != kernel.block ||
                   first.parameters != kernel.parameters)) {
      launch.emitError() << launch.getKernelAttr()
                         << " is launched elsewhere with another grid, other "
                            "blocks or other parameters";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  result = root.walk([&](kernel::ConstantOp constant) {
    auto global = root.lookupSymbol<memref::GlobalOp>(constant.getName());
    auto values = dyn_cast_or_null<DenseElementsAttr>(
        global ? global.getInitialValue().value_or(Attribute()) : Attribute());
    if (!values || global.getType() != constant.getType()) {
      constant.emitError() << constant.getNameAttr()
                           << " is no constant of this type";
      return WalkResult::interrupt();
    }
    constants.insert(
        {constant.getNameAttr(), {getBytes(global.getType()), values}});
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A parameter as a word.
static Value toWord(OpBuilder &builder, Location loc, RuntimeCalls &runtime,
                    Value value) {
  Type type = value.getType();
  if (isa<MemRefType>(type))
    return LLVM::PtrToIntOp::create(builder, loc, runtime.i64,
                                    runtime.getPointer(builder, loc, value));
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, runtime.i64, value);
  if (isa<FloatType>(type)) {
    type = builder.getIntegerType(type.getIntOrFloatBitWidth());
    value = arith::BitcastOp::create(builder, loc, type, value);
  }
  if (type == runtime.i64)
    return value;
  return arith::ExtUIOp::create(builder, loc, runtime.i64, value);
}

void LaunchTable::convert(RuntimeCalls &runtime,
                          kernel::LaunchOp launch) const {
  auto caller = launch->getParentOfType<func::FuncOp>();
  Location loc = launch.getLoc();
  OpBuilder atStart =
      OpBuilder::atBlockBegin(&caller.getFunctionBody().front());
  Value count = runtime.number(
      atStart, loc, static_cast<int64_t>(launch.getParameters().size()));
  Value words =
      LLVM::AllocaOp::create(atStart, loc, runtime.pointer, runtime.i64, count);
  OpBuilder builder(launch);
  for (auto [index, value] : llvm::enumerate(launch.getParameters())) {
    Value word = toWord(builder, loc, runtime, value);
    Value place =
        LLVM::GEPOp::create(builder, loc, runtime.pointer, runtime.i64, words,
                            ArrayRef<LLVM::GEPArg>{int32_t(index)});
    LLVM::StoreOp::create(builder, loc, word, place);
  }
  Value number = runtime.number(builder, loc, getNumber(launch));
  runtime.call(builder, loc, "penstock_launch", runtime.none,
               {caller.getArgument(0), number, words});
  launch.erase();
}

void LaunchTable::convert(RuntimeCalls &runtime,
                          kernel::ConstantOp constant) const {
  OpBuilder builder(constant);
  Location loc = constant.getLoc();
  Value number = runtime.number(
      builder, loc, constants.find(constant.getNameAttr()) - constants.begin());
  Value address =
      runtime.call(builder, loc, "penstock_find_constant", runtime.pointer,
                   {RuntimeCalls::getDevice(constant), number});
  constant.replaceAllUsesWith(runtime.makeBuffer(
      builder, loc, cast<MemRefType>(constant.getType()), address));
  constant.erase();
}

LogicalResult LaunchTable::convert(RuntimeCalls &runtime) const {
  return runtime.convertAll<kernel::LaunchOp, kernel::ConstantOp>(
      [&](auto op) { convert(runtime, op); });
}

static std::array<uint32_t, 3> toSizes(ArrayRef<int64_t> sizes) {
  return {uint32_t(sizes[0]), uint32_t(sizes[1]), uint32_t(sizes[2])};
}

std::vector<Constant>
LaunchTable::getKernels(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, kernel] : kernels)
    table.push_back(abi::kernel{
        .name = constants.string(cast<SymbolRefAttr>(name).getLeafReference()),
        .grid = toSizes(kernel.grid),
        .block = toSizes(kernel.block),
        .shared_bytes = 0,
        .parameter_count = static_cast<int64_t>(kernel.parameters)}
                        .get());
  return table;
}

std::vector<Constant>
LaunchTable::getConstants(ConstantBuilder &builder) const {
  std::vector<Constant> table;
  for (auto &[name, constant] : constants)
    table.push_back(abi::constant{
        .bytes = constant.bytes,
        .data = builder.values(cast<FlatSymbolRefAttr>(name).getValue(),
                               constant.values)}
                        .get());
  return table;
}
