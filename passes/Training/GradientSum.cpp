//===- GradientSum.cpp - Gradients of one parameter -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See GradientSum.h.
//===----------------------------------------------------------------------===//

#include "passes/Training/GradientSum.h"

#include "penstock/Support/Structured.h"

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
  Structured s(builder, loc);
  SmallVector<Value> sums =
      s.generics({}, function.getArguments(),
                 SmallVector<AffineMap>(count, s.identity(type.getRank())),
                 Structured::parallel(type.getRank()),
                 [&](Scalars &s, ValueRange elements) {
                   Value sum = elements.front();
                   for (Value element : elements.drop_front())
                     sum = s.add(sum, element);
                   SmallVector<Value> yielded(count, s.like(sum, 0));
                   yielded.front() = sum;
                   return yielded;
                 });
  func::ReturnOp::create(builder, loc, sums);
}
