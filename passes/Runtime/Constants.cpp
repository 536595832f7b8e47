//===- Constants.cpp - Builds constant tables in LLVM IR ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Globals whose initializers insert the fields that are not zero; the
// translation to LLVM IR folds them into plain data.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/Constants.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>

using namespace mlir;
using namespace penstock;

Constant Constant::integers(ArrayRef<int64_t> values) {
  std::vector<Constant> elements;
  for (int64_t value : values)
    elements.push_back(i64(value));
  return array(std::move(elements));
}

ConstantBuilder::ConstantBuilder(ModuleOp module)
    : module(module), builder(OpBuilder::atBlockEnd(module.getBody())) {}

Type ConstantBuilder::getType(const Constant &constant) {
  MLIRContext *context = module.getContext();
  if (auto *integer = std::get_if<Constant::Integer>(&constant.value))
    return IntegerType::get(context, integer->width);
  if (std::holds_alternative<double>(constant.value))
    return Float64Type::get(context);
  if (std::holds_alternative<std::string>(constant.value))
    return LLVM::LLVMPointerType::get(context);
  if (auto *bytes = std::get_if<std::vector<uint8_t>>(&constant.value))
    return LLVM::LLVMArrayType::get(IntegerType::get(context, 8),
                                    bytes->size());
  auto &fields = std::get<Constant::Fields>(constant.value);
  if (fields.isArray)
    return LLVM::LLVMArrayType::get(getType(fields.parts.front()),
                                    fields.parts.size());
  SmallVector<Type> types;
  for (const Constant &part : fields.parts)
    types.push_back(getType(part));
  return LLVM::LLVMStructType::getLiteral(context, types);
}

bool ConstantBuilder::isZero(const Constant &constant) {
  if (auto *integer = std::get_if<Constant::Integer>(&constant.value))
    return integer->value == 0;
  if (auto *number = std::get_if<double>(&constant.value))
    return *number == 0 && !std::signbit(*number);
  if (auto *symbol = std::get_if<std::string>(&constant.value))
    return symbol->empty();
  auto *fields = std::get_if<Constant::Fields>(&constant.value);
  return fields && llvm::all_of(fields->parts, isZero);
}

Value ConstantBuilder::emitLeaf(OpBuilder &inner, Type type, Attribute value) {
  Value &leaf = leaves[{type, value}];
  if (leaf)
    return leaf;
  Location loc = module.getLoc();
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(value))
    leaf = LLVM::AddressOfOp::create(inner, loc, type, symbol);
  else
    leaf = LLVM::ConstantOp::create(inner, loc, type, value);
  return leaf;
}

Value ConstantBuilder::emit(OpBuilder &inner, const Constant &constant) {
  Location loc = module.getLoc();
  Type type = getType(constant);
  if (isZero(constant))
    return LLVM::ZeroOp::create(inner, loc, type);
  if (auto *integer = std::get_if<Constant::Integer>(&constant.value))
    return emitLeaf(inner, type, inner.getIntegerAttr(type, integer->value));
  if (auto *number = std::get_if<double>(&constant.value))
    return emitLeaf(inner, type, inner.getF64FloatAttr(*number));
  if (auto *symbol = std::get_if<std::string>(&constant.value))
    return emitLeaf(inner, type,
                    FlatSymbolRefAttr::get(inner.getContext(), *symbol));
  if (auto *bytes = std::get_if<std::vector<uint8_t>>(&constant.value)) {
    auto tensor = RankedTensorType::get({static_cast<int64_t>(bytes->size())},
                                        inner.getI8Type());
    return emitLeaf(inner, type,
                    DenseElementsAttr::get(tensor, ArrayRef<uint8_t>(*bytes)));
  }
  auto &fields = std::get<Constant::Fields>(constant.value);
  Value aggregate = LLVM::ZeroOp::create(inner, loc, type);
  for (auto [position, part] : llvm::enumerate(fields.parts))
    if (!isZero(part))
      aggregate =
          LLVM::InsertValueOp::create(inner, loc, aggregate, emit(inner, part),
                                      static_cast<int64_t>(position));
  return aggregate;
}

void ConstantBuilder::add(StringRef name, const Constant &value,
                          bool exported) {
  auto global = LLVM::GlobalOp::create(
      builder, module.getLoc(), getType(value), /*isConstant=*/true,
      exported ? LLVM::Linkage::External : LLVM::Linkage::Internal, name,
      Attribute());
  OpBuilder inner(module.getContext());
  inner.setInsertionPointToEnd(&global.getInitializerRegion().emplaceBlock());
  LLVM::ReturnOp::create(inner, module.getLoc(), emit(inner, value));
  leaves.clear();
}

Constant ConstantBuilder::declare(StringRef symbol) {
  if (!module.lookupSymbol(symbol))
    LLVM::GlobalOp::create(builder, module.getLoc(), builder.getI8Type(),
                           /*isConstant=*/true, LLVM::Linkage::External, symbol,
                           Attribute());
  return Constant::address(symbol);
}

Constant ConstantBuilder::values(StringRef name, DenseElementsAttr values) {
  std::string symbol = ("penstock.constant." + name).str();
  Type element = values.getElementType();
  int64_t count = values.getNumElements();
  constexpr unsigned kAlignment = 64;
  if (!module.lookupSymbol(symbol))
    LLVM::GlobalOp::create(
        builder, module.getLoc(), LLVM::LLVMArrayType::get(element, count),
        /*isConstant=*/true, LLVM::Linkage::Internal, symbol,
        values.reshape(RankedTensorType::get({count}, element)), kAlignment);
  return Constant::address(symbol);
}

Constant ConstantBuilder::string(StringRef text) {
  std::string &name = strings[text];
  if (name.empty()) {
    name = "penstock.string." + std::to_string(strings.size() - 1);
    std::string terminated = text.str();
    terminated.push_back('\0');
    LLVM::GlobalOp::create(
        builder, module.getLoc(),
        LLVM::LLVMArrayType::get(builder.getI8Type(), terminated.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, name,
        builder.getStringAttr(terminated));
  }
  return Constant::address(name);
}

Constant ConstantBuilder::table(StringRef name,
                                std::vector<Constant> elements) {
  if (elements.empty())
    return Constant::null();
  add(name, Constant::array(std::move(elements)));
  return Constant::address(name);
}

Constant ConstantBuilder::shape(ArrayRef<int64_t> sizes) {
  if (sizes.empty())
    return Constant::null();
  std::string text;
  for (int64_t size : sizes)
    text += "." + std::to_string(size);
  std::string &name = shapes[text];
  if (name.empty()) {
    name = "penstock.shape" + text;
    add(name, Constant::integers(sizes));
  }
  return Constant::address(name);
}
