//===- UpdateFunction.cpp - Updates that compute more ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See UpdateFunction.h.
//===----------------------------------------------------------------------===//

#include "penstock/Optimizers/UpdateFunction.h"

#include "dialects/Pipeline/Signatures.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace penstock;

std::string penstock::describeType(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(type.getShape(), stream, "x");
  if (type.getRank() == 0)
    stream << "scalar";
  if (!type.getElementType().isF32())
    stream << "x" << type.getElementType();
  return text;
}

linalg::GenericOp penstock::getElementwiseOp(func::FuncOp function) {
  if (!function || function.isDeclaration())
    return {};
  Operation *end = function.front().getTerminator();
  linalg::GenericOp op;
  for (auto [index, value] : llvm::enumerate(end->getOperands())) {
    auto result = dyn_cast<OpResult>(value);
    auto generic = value.getDefiningOp<linalg::GenericOp>();
    if (!generic || (op && generic != op) || result.getResultNumber() != index)
      return {};
    op = generic;
  }
  if (!op || op.getNumResults() != end->getNumOperands() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
        // All have one element of some inputs.
        return map.isIdentity() || map.getNumResults() == 0;
      }))
    return {};
  return op;
}

FailureOr<func::FuncOp> penstock::extendUpdate(SymbolTable &symbols,
                                               func::FuncOp update,
                                               StringRef name,
                                               UpdateExtension extension,
                                               EmitElements emit) {
  if (!getElementwiseOp(update))
    return update.emitError("is not one elementwise op");
  // 1. The copy, with its further arguments: tensors behind tensors, scalars
  //    behind scalars.
  func::FuncOp copy = update.clone();
  copy.setSymName(name);
  symbols.insert(copy, std::next(update->getIterator()));
  linalg::GenericOp old = getElementwiseOp(copy);
  Location loc = copy.getLoc();
  auto type = cast<RankedTensorType>(old.getResult(0).getType());
  Builder attributes(copy.getContext());
  unsigned tensors =
      llvm::count_if(copy.getArgumentTypes(), llvm::IsaPred<RankedTensorType>);
  for (unsigned i = 0; i < extension.states; ++i) {
    if (failed(copy.insertArgument(tensors + i, type, {}, loc)))
      return failure();
    copy.setArgAttr(tensors + i, pipeline::kIntoAttr,
                    attributes.getI64IntegerAttr(old.getNumResults() + i));
  }
  unsigned firstInput = tensors + extension.states;
  for (unsigned i = 0; i < extension.inputs; ++i)
    if (failed(copy.insertArgument(firstInput + i, type, {}, loc)))
      return failure();
  for (unsigned i = 0; i < extension.scalars; ++i)
    if (failed(copy.insertArgument(copy.getNumArguments(),
                                   attributes.getF32Type(), {}, loc)))
      return failure();

  // 2. The op, with further results.
  OpBuilder builder(old);
  SmallVector<Value> inputs(old.getInputs()), outputs(old.getDpsInits());
  SmallVector<AffineMap> maps = old.getIndexingMapsArray();
  maps.insert(maps.begin() + inputs.size(), extension.inputs,
              builder.getMultiDimIdentityMap(type.getRank()));
  llvm::append_range(
      inputs,
      ValueRange(copy.getArguments()).slice(firstInput, extension.inputs));
  llvm::append_range(
      outputs,
      ValueRange(copy.getArguments()).slice(tensors, extension.states));
  for (Type element : extension.results)
    outputs.push_back(tensor::EmptyOp::create(builder, loc, type.clone(element),
                                              ValueRange()));
  maps.append(extension.states + extension.results.size(),
              builder.getMultiDimIdentityMap(type.getRank()));
  UpdateElements elements;
  for (Value scalar :
       ValueRange(copy.getArguments()).take_back(extension.scalars))
    elements.scalars.push_back(scalar);
  auto op = linalg::GenericOp::create(
      builder, loc, ValueRange(outputs).getTypes(), inputs, outputs, maps,
      old.getIteratorTypesArray());
  op.getRegion().takeBody(old.getRegion());

  // 3. What it computes.
  Block *body = op.getBody();
  for (unsigned i = 0; i < extension.inputs; ++i)
    elements.inputs.push_back(body->insertArgument(
        inputs.size() - extension.inputs + i, type.getElementType(), loc));
  for (unsigned i = 0; i < extension.states; ++i)
    elements.states.push_back(body->addArgument(type.getElementType(), loc));
  for (Type element : extension.results)
    body->addArgument(element, loc);
  elements.arguments.resize(tensors);
  for (OpOperand &operand : op->getOpOperands())
    if (auto argument = dyn_cast<BlockArgument>(operand.get());
        argument && argument.getArgNumber() < tensors)
      elements.arguments[argument.getArgNumber()] =
          op.getMatchingBlockArgument(&operand);
  Operation *yield = body->getTerminator();
  llvm::append_range(elements.results, yield->getOperands());
  OpBuilder inside(yield);
  SmallVector<Value> further =
      emit(Arithmetic{inside, loc, type.getElementType()}, elements);
  for (auto [value, element] :
       llvm::zip(MutableArrayRef(further).drop_front(extension.states),
                 extension.results))
    value = Arithmetic{inside, loc, element}.from(value);
  yield->insertOperands(yield->getNumOperands(), further);

  // 4. The results.
  Operation *end = copy.front().getTerminator();
  end->setOperands(op.getResults());
  old.erase();
  copy.setFunctionType(builder.getFunctionType(copy.front().getArgumentTypes(),
                                               op.getResultTypes()));
  if (pipeline::SignatureAttr signature = pipeline::getSignature(update)) {
    Attribute state = pipeline::RoleAttr::get(copy.getContext(),
                                              pipeline::Role::Compensation);
    SmallVector<Attribute> inputs(signature.getInputs().getValue());
    SmallVector<Attribute> results(signature.getResults().getValue());
    inputs.insert(inputs.begin() + tensors, extension.states, state);
    inputs.insert(inputs.begin() + firstInput, extension.inputs,
                  builder.getUnitAttr());
    inputs.append(extension.scalars, builder.getUnitAttr());
    results.append(extension.states + extension.results.size(), state);
    pipeline::setSignature(copy, inputs, results);
  }
  return copy;
}

func::CallOp penstock::replaceUpdateCall(func::CallOp call,
                                         func::FuncOp extended,
                                         ValueRange tensors,
                                         ValueRange scalars) {
  SmallVector<Value> operands;
  for (Value operand : call.getOperands())
    if (isa<TensorType>(operand.getType()))
      operands.push_back(operand);
  llvm::append_range(operands, tensors);
  for (Value operand : call.getOperands())
    if (!isa<TensorType>(operand.getType()))
      operands.push_back(operand);
  llvm::append_range(operands, scalars);
  OpBuilder builder(call);
  auto made = func::CallOp::create(builder, call.getLoc(), extended, operands);
  call.replaceAllUsesWith(made.getResults().take_front(call.getNumResults()));
  call.erase();
  return made;
}
