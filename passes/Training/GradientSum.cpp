//===- GradientSum.cpp - Gradients of one parameter -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See GradientSum.h.
//===----------------------------------------------------------------------===//

#include "passes/Training/GradientSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

llvm::MapVector<Attribute, SmallVector<VariableOp>>
penstock::collectGradients(ModuleOp module) {
  llvm::MapVector<Attribute, SmallVector<VariableOp>> gradients;
  for (auto variable : module.getOps<VariableOp>())
    if (auto parameter =
            variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
        parameter && variable.getRole() == Role::Gradient)
      gradients[parameter].push_back(variable);
  // A group says their order, over stages.
  SymbolTable symbols(module);
  for (auto group : module.getOps<GroupOp>())
    for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
      SmallVector<VariableOp> ordered;
      for (auto name : member.getAsRange<FlatSymbolRefAttr>())
        ordered.push_back(symbols.lookup<VariableOp>(name.getAttr()));
      Attribute parameter = ordered.front()->getAttr(kParameterAttr);
      if (ordered.front().getRole() == Role::Gradient &&
          gradients.contains(parameter))
        gradients[parameter] = ordered;
    }
  return gradients;
}

void penstock::emitGradientSum(func::FuncOp function) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes().front());
  unsigned count = function.getNumArguments();
  Location loc = function.getLoc();
  auto builder = OpBuilder::atBlockEnd(&function.front());
  for (unsigned i = 0; i < count; ++i)
    function.setArgAttr(i, kIntoAttr, builder.getI64IntegerAttr(i));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  auto generic = linalg::GenericOp::create(
      builder, loc, function.getResultTypes(), ValueRange(),
      function.getArguments(), SmallVector<AffineMap>(count, identity),
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [&](OpBuilder &body, Location loc, ValueRange elements) {
        Value sum = elements.front();
        for (Value element : elements.drop_front())
          sum = arith::AddFOp::create(body, loc, sum, element);
        Value zero = arith::ConstantOp::create(
            body, loc, body.getZeroAttr(type.getElementType()));
        SmallVector<Value> yielded(count, zero);
        yielded.front() = sum;
        linalg::YieldOp::create(body, loc, yielded);
      });
  func::ReturnOp::create(builder, loc, generic.getResults());
}
