//===- OnnxAttachOutputs.cpp - What inference gives -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The counterpart of OnnxAttachLoss for programs that do not train: every
// output of the model leaves through a sink of its name.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "dialects/Onnx/DiscardableAttributes.h"
#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {
#define GEN_PASS_DEF_ONNXATTACHOUTPUTS
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

struct OnnxAttachOutputsPass
    : penstock::impl::OnnxAttachOutputsBase<OnnxAttachOutputsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // 1. Once is enough.
    for (auto channel : module.getOps<pipeline::ChannelOp>())
      if (channel.getSink())
        return markAllAnalysesPreserved();

    // 2. The one forward task and its one call.
    SmallVector<pipeline::TaskOp> tasks(module.getOps<pipeline::TaskOp>());
    if (tasks.size() != 1 || tasks.front().isBodyless())
      return fail("outputs are attached to a program of one forward task");
    pipeline::TaskOp task = tasks.front();
    SmallVector<func::CallOp> calls(task.getBody().getOps<func::CallOp>());
    if (calls.size() != 1)
      return fail("outputs are attached to a task with one call");
    func::CallOp call = calls.front();
    auto function = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!function || function.isDeclaration())
      return fail("the forward task calls no function of the program");
    attach(module, task, call, function);

    // 3. Nothing trains: a weight that several stages read is copied.
    for (auto variable : module.getOps<pipeline::VariableOp>())
      variable.setFrozen(true);
  }

  void fail(const Twine &message) {
    emitError(getOperation().getLoc()) << message;
    signalPassFailure();
  }

  void attach(ModuleOp module, pipeline::TaskOp task, func::CallOp call,
              func::FuncOp function) {
    Operation *terminator = function.getBody().front().getTerminator();
    SymbolTable symbols(module);
    OpBuilder builder(&getContext());
    Operation *last = task->getPrevNode();
    for (auto channel : module.getOps<pipeline::ChannelOp>())
      last = channel;
    SmallVector<pipeline::ChannelOp> channels;
    for (auto [index, type] : llvm::enumerate(terminator->getOperandTypes())) {
      auto name =
          function.getResultAttrOfType<StringAttr>(index, kOutputNameAttr);
      if (!name)
        name = builder.getStringAttr("output." + Twine(index));
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (tensor && tensor.hasStaticShape() && tensor.getNumElements() == 0)
        return fail("output '" + name.getValue() +
                    "' has no elements that "
                    "could be written; drop it from the model's outputs");
      auto channel = pipeline::ChannelOp::create(
          builder, module.getLoc(), name, builder.getTypeArrayAttr(type),
          pipeline::SourceAttr(),
          pipeline::SinkAttr::get(&getContext(), pipeline::SinkKind::Output,
                                  name),
          IntegerAttr(), IntegerAttr());
      // The name may be taken, by an input or a weight.
      symbols.insert(channel);
      channel->moveAfter(last);
      last = channel;
      channels.push_back(channel);
    }
    function.setResAttrsAttr(nullptr);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), terminator->getOperandTypes()));
    builder.setInsertionPoint(call);
    auto withResults = func::CallOp::create(builder, call.getLoc(), function,
                                            call.getOperands());
    for (auto [result, channel] :
         llvm::zip_equal(withResults.getResults(), channels))
      pipeline::PutOp::create(builder, call.getLoc(), result,
                              FlatSymbolRefAttr::get(channel));
    call.erase();
  }
};

} // namespace
