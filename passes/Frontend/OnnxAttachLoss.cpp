//===- OnnxAttachLoss.cpp - The loss as nodes -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Appends the loss to the model's function, and to its task the labels that go
// in and the loss that comes out.
//===----------------------------------------------------------------------===//

#include "LossNodes.h"
#include "passes/Frontend/Passes.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

namespace penstock {
#define GEN_PASS_DEF_ONNXATTACHLOSS
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

struct OnnxAttachLoss
    : public penstock::impl::OnnxAttachLossBase<OnnxAttachLoss> {
  using OnnxAttachLossBase::OnnxAttachLossBase;

  void runOnOperation() override;

private:
  LogicalResult findProgram();
  LogicalResult selectOutput();
  Value addLabels(RankedTensorType type);
  void dropWhatIsNotUsed();
  LogicalResult checkSamples(Type output);
  void rebuildTask();
  StringAttr makeSymbol(StringRef name);

  InFlightDiagnostic error() { return emitError(function.getLoc()); }

  pipeline::TaskOp task;
  func::CallOp call;
  func::FuncOp function;
  /// The output of the model that enters the loss, then the loss.
  Value value;
  std::string name;
  /// The channel of the labels, and their argument; null without labels.
  pipeline::ChannelOp labels;
};

} // namespace

/// Behind the last op of a kind in `block`, or before `otherwise`.
template <typename OpTy>
static void setAfterLast(OpBuilder &builder, Block &block,
                         Operation *otherwise) {
  builder.setInsertionPoint(otherwise);
  for (OpTy op : block.getOps<OpTy>())
    builder.setInsertionPointAfter(op);
}

LogicalResult OnnxAttachLoss::findProgram() {
  ModuleOp module = getOperation();
  for (auto candidate : module.getOps<pipeline::TaskOp>()) {
    if (candidate.getKind() != pipeline::TaskKind::Forward ||
        candidate.isBodyless())
      continue;
    if (task)
      return emitError(module.getLoc())
             << "a loss is attached to a program of one forward task";
    task = candidate;
  }
  if (!task)
    return emitError(module.getLoc()) << "the program has no forward task";
  for (auto candidate : task.getBody().getOps<func::CallOp>()) {
    if (call)
      return emitError(module.getLoc())
             << "a loss is attached to a task with one call";
    call = candidate;
  }
  if (call)
    function = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!function || function.isDeclaration())
    return emitError(module.getLoc())
           << "the forward task calls no function of the program";
  return success();
}

LogicalResult OnnxAttachLoss::selectOutput() {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto attr = function.getResultAttrOfType<StringAttr>(i, kOutputNameAttr);
    names.push_back(attr ? attr.getValue() : StringRef());
  }
  if (names.empty())
    return error() << "the model has no output";
  if (lossInput.empty() && names.size() > 1)
    return error() << "the model has " << names.size()
                   << " outputs: " << llvm::join(names, ", ")
                   << "; say by --loss-input=NAME which of them enters the "
                      "loss";
  const auto *found =
      lossInput.empty() ? names.begin() : llvm::find(names, lossInput);
  if (found == names.end())
    return error() << "--loss-input=" << lossInput
                   << ": the model has no such output; it has: "
                   << llvm::join(names, ", ");
  unsigned index = found - names.begin();
  name = names[index].str();
  value = function.getBody().front().getTerminator()->getOperand(index);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return error() << "output '" << name << "' has no static shape";
  if (!isa<FloatType>(type.getElementType()))
    return error() << "output '" << name << "' is " << type
                   << ", and a loss needs floats";
  return success();
}

StringAttr OnnxAttachLoss::makeSymbol(StringRef wanted) {
  std::string symbol = wanted.str();
  for (unsigned copy = 1; getOperation().lookupSymbol(symbol); ++copy)
    symbol = (wanted + "." + Twine(copy)).str();
  return StringAttr::get(&getContext(), symbol);
}

Value OnnxAttachLoss::addLabels(RankedTensorType type) {
  ModuleOp module = getOperation();
  for (auto channel : module.getOps<pipeline::ChannelOp>())
    if (channel.isLabels()) {
      error() << "--loss=" << loss << ": the model has an input named "
              << "'labels', which the labels of the loss need; rename it";
      return nullptr;
    }
  OpBuilder builder(&getContext());
  setAfterLast<pipeline::ChannelOp>(builder, *module.getBody(), task);
  labels = pipeline::ChannelOp::create(
      builder, module.getLoc(), makeSymbol("labels"),
      builder.getTypeArrayAttr(Type(type)),
      pipeline::SourceAttr::get(&getContext(), pipeline::SourceKind::Labels,
                                {}),
      pipeline::SinkAttr(), IntegerAttr(), IntegerAttr());
  // Taken values come before the variables read.
  unsigned taken = 0;
  for (Value operand : call.getOperands())
    taken += isa_and_nonnull<pipeline::TakeOp>(operand.getDefiningOp());
  setAfterLast<pipeline::TakeOp>(builder, task.getBody().front(), call);
  auto take =
      pipeline::TakeOp::create(builder, task.getLoc(), TypeRange(type),
                               FlatSymbolRefAttr::get(labels.getSymNameAttr()));
  call->insertOperands(taken, take.getResult(0));
  return function.getBody().front().insertArgument(taken, type,
                                                   function.getLoc());
}

//===----------------------------------------------------------------------===//
// The program around it
//===----------------------------------------------------------------------===//

void OnnxAttachLoss::dropWhatIsNotUsed() {
  ModuleOp module = getOperation();
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector dead(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    if (argument.use_empty())
      dead.set(argument.getArgNumber());
  block.eraseArguments(dead);

  // Their takes and reads go, and with them the channels and variables.
  SmallVector<Attribute> unusedInputs;
  if (auto known = module->getAttrOfType<ArrayAttr>(kUnusedInputsAttr))
    unusedInputs.append(known.begin(), known.end());
  SmallVector<Operation *> producers;
  for (int i = dead.find_first(); i >= 0; i = dead.find_next(i))
    producers.push_back(call.getOperand(i).getDefiningOp());
  call->eraseOperands(dead);
  for (Operation *producer : producers) {
    if (!producer || !producer->use_empty())
      continue;
    FlatSymbolRefAttr symbol;
    if (auto take = dyn_cast<pipeline::TakeOp>(producer))
      symbol = take.getChannelAttr();
    else if (auto read = dyn_cast<pipeline::ReadOp>(producer))
      symbol = read.getVariableAttr();
    producer->erase();
    if (!symbol)
      continue;
    Operation *definition = module.lookupSymbol(symbol.getValue());
    if (!definition)
      continue;
    if (auto channel = dyn_cast<pipeline::ChannelOp>(definition);
        channel && channel.getSource())
      unusedInputs.push_back(
          StringAttr::get(&getContext(), channel.getSource()->getEndpoint()));
    definition->erase();
  }
  if (!unusedInputs.empty())
    module->setAttr(kUnusedInputsAttr,
                    ArrayAttr::get(&getContext(), unusedInputs));
}

/// Labels and inputs are divided into microbatches along their first axis.
LogicalResult OnnxAttachLoss::checkSamples(Type output) {
  RankedTensorType wanted = labels.getTensorType(0);
  auto inputs =
      llvm::make_filter_range(getOperation().getOps<pipeline::ChannelOp>(),
                              [&](pipeline::ChannelOp channel) {
                                return channel.getSource() && channel != labels;
                              });
  auto fits = [&](pipeline::ChannelOp input) {
    RankedTensorType type = input.getTensorType(0);
    return wanted.getRank() != 0 && type.getRank() != 0 &&
           type.getDimSize(0) == wanted.getDimSize(0);
  };
  bool outputFits = llvm::any_of(inputs, fits);
  for (pipeline::ChannelOp input : inputs) {
    if (fits(input))
      continue;
    if (outputFits)
      return error() << "input '" << input.getSource()->getEndpoint() << "' is "
                     << input.getTensorType(0) << ", without the axis of "
                     << "samples that output '" << name << "' has; give it "
                     << "one, or make it an initializer";
    return error() << "--loss=" << loss << ": output '" << name << "' is "
                   << output << ", without the axis of samples of input '"
                   << input.getSource()->getEndpoint() << "', which is "
                   << input.getTensorType(0) << "; leave out the nodes that "
                   << "join or move it, or let the model compute its loss";
  }
  return success();
}

void OnnxAttachLoss::rebuildTask() {
  ModuleOp module = getOperation();
  Block &block = function.getBody().front();
  function.setResAttrsAttr(nullptr);
  function.setFunctionType(
      FunctionType::get(&getContext(), block.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  OpBuilder builder(&getContext());
  setAfterLast<pipeline::ChannelOp>(builder, *module.getBody(), task);
  StringAttr symbol = makeSymbol("loss");
  pipeline::ChannelOp::create(
      builder, module.getLoc(), symbol,
      builder.getTypeArrayAttr(value.getType()), pipeline::SourceAttr(),
      pipeline::SinkAttr::get(&getContext(), pipeline::SinkKind::Loss, {}),
      IntegerAttr(), IntegerAttr());
  builder.setInsertionPoint(call);
  auto newCall = func::CallOp::create(builder, call.getLoc(), function,
                                      call.getOperands());
  pipeline::PutOp::create(builder, call.getLoc(), newCall.getResults(),
                          FlatSymbolRefAttr::get(symbol));
  call.erase();
}

void OnnxAttachLoss::runOnOperation() {
  // 1. Once is enough.
  task = nullptr;
  call = nullptr;
  function = nullptr;
  labels = nullptr;
  for (auto channel : getOperation().getOps<pipeline::ChannelOp>())
    if (channel.isLoss())
      return markAllAnalysesPreserved();

  // 2. The output that enters, and the loss of it.
  if (failed(findProgram()) || failed(selectOutput()))
    return signalPassFailure();
  Type output = value.getType();
  FailureOr<Value> appended = appendLoss(
      function, value,
      {loss, classAxis, ignoreLabel, labelSmoothing,
       SmallVector<double>(classWeights.begin(), classWeights.end()), name},
      [&](RankedTensorType type) { return addLabels(type); });
  if (failed(appended))
    return signalPassFailure();
  value = *appended;

  // 3. The loss is the only result; what it does not need goes.
  function.getBody().front().getTerminator()->setOperands(value);
  dropWhatIsNotUsed();
  if (labels && failed(checkSamples(output)))
    return signalPassFailure();
  rebuildTask();
}
