//===- PassAddresses.cpp - Functions take addresses of buffers ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convention of bare pointers, before the conversions: upstream's makes a
// descriptor of seven ops or more for each buffer, also where a function does
// nothing but pass it on.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPASSADDRESSES
#include "passes/Runtime/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

class AddressPasser {
public:
  explicit AddressPasser(MLIRContext *context)
      : types(context), pointer(LLVM::LLVMPointerType::get(context)) {}

  void convert(ModuleOp module);

private:
  /// Returns true where an address says all there is to know about a buffer of
  /// this type.
  bool isStatic(Type type);
  /// Returns the address that is seen as a buffer, null if none is.
  Value getAddress(Value buffer);
  void convertSignature(func::FuncOp function);
  void convertOperands(func::CallOp call);
  void readBuffer(UnrealizedConversionCastOp buffer);
  Value getAddress(func::CallOp call, Value buffer);

  LLVMTypeConverter types;
  Type pointer;
  /// Buffers are many, and their types few.
  llvm::DenseMap<Type, bool> known;
};

struct PassAddressesPass
    : penstock::impl::PipelinePassAddressesBase<PassAddressesPass> {
  void runOnOperation() override {
    AddressPasser(&getContext()).convert(getOperation());
  }
};

} // namespace

bool AddressPasser::isStatic(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  if (!buffer)
    return false;
  auto [entry, isNew] = known.try_emplace(type);
  if (isNew)
    entry->second = LLVMTypeConverter::canConvertToBarePtr(buffer);
  return entry->second;
}

Value AddressPasser::getAddress(Value buffer) {
  auto cast = buffer.getDefiningOp<UnrealizedConversionCastOp>();
  if (!cast || cast->getNumOperands() != 1 ||
      cast->getOperand(0).getType() != pointer || !isStatic(buffer.getType()))
    return nullptr;
  return cast->getOperand(0);
}

void AddressPasser::convertSignature(func::FuncOp function) {
  FunctionType type = function.getFunctionType();
  auto inputs = llvm::map_to_vector(type.getInputs(), [&](Type input) {
    return isStatic(input) ? pointer : input;
  });
  function.setFunctionType(
      FunctionType::get(type.getContext(), inputs, type.getResults()));
  if (function.isDeclaration())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  for (BlockArgument argument : function.getArguments()) {
    Type buffer = argument.getType();
    if (!isStatic(buffer))
      continue;
    argument.setType(pointer);
    if (argument.use_empty())
      continue;
    auto cast = UnrealizedConversionCastOp::create(builder, function.getLoc(),
                                                   buffer, Value(argument));
    argument.replaceAllUsesExcept(cast.getResult(0), cast);
  }
}

Value AddressPasser::getAddress(func::CallOp call, Value buffer) {
  if (Value address = getAddress(buffer))
    return address;
  OpBuilder builder(call);
  Location loc = call.getLoc();
  Value descriptor =
      UnrealizedConversionCastOp::create(
          builder, loc, types.convertType(buffer.getType()), buffer)
          .getResult(0);
  return MemRefDescriptor(descriptor).alignedPtr(builder, loc);
}

void AddressPasser::convertOperands(func::CallOp call) {
  for (OpOperand &operand : call->getOpOperands())
    if (isStatic(operand.get().getType()))
      operand.set(getAddress(call, operand.get()));
}

/// Makes a descriptor for what reads or writes a buffer.
void AddressPasser::readBuffer(UnrealizedConversionCastOp buffer) {
  if (!buffer->use_empty()) {
    OpBuilder builder(buffer);
    Value descriptor = MemRefDescriptor::fromStaticShape(
        builder, buffer.getLoc(), types,
        cast<MemRefType>(buffer->getResult(0).getType()),
        buffer->getOperand(0));
    buffer->setOperand(0, descriptor);
  } else {
    buffer->erase();
  }
}

void AddressPasser::convert(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    convertSignature(function);
  for (Operation &function : *module.getBody())
    function.walk([&](func::CallOp call) { convertOperands(call); });
  for (Operation &function : *module.getBody())
    function.walk([&](UnrealizedConversionCastOp cast) {
      if (cast->getNumResults() == 1 && getAddress(cast->getResult(0)))
        readBuffer(cast);
    });
}
