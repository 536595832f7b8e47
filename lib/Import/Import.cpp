//===- Import.cpp - From an ONNX file to a module -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph becomes a function: inputs and weights in, outputs out, and only
// what the outputs need.
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "Dimensions.h"
#include "dialects/Onnx/Onnx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

using namespace llvm;
using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;
using ::onnx::ValueInfoProto;

LogicalResult Importer::importInputs(GraphImporter &graph) {
  Block &block = function.getBody().front();
  for (const TensorRecord &tensor : file->getInitializers())
    initializerNames.insert(tensor.name);
  buffers.insert_range(file->getBuffers());
  parameters.insert_range(file->getParameters());
  for (const FoldedTensor &tensor : file->getFolded())
    if (tensor.parameters.empty())
      buffers.insert(tensor.name);
  roles.emplace(file->getModel());
  for (const ValueInfoProto &input : file->getModel().graph().input()) {
    // Old models list their initialisers among the inputs.
    if (initializerNames.contains(input.name()))
      continue;
    if (input.name().empty())
      return error("an input of the graph has no name");
    // The type comes later: an input that nothing reads needs none.
    Value argument =
        block.addArgument(UnrankedTensorType::get(builder.getF32Type()),
                          NameLoc::get(builder.getStringAttr(input.name())));
    inputs.push_back(&input);
    if (failed(graph.define(input.name(), argument)))
      return failure();
  }
  return success();
}

LogicalResult Importer::importOutputs(GraphImporter &graph) {
  const auto &declared = file->getModel().graph().output();
  if (declared.empty())
    return error("the graph has no output");
  SmallVector<Value> values;
  auto add = [&](StringRef name) -> LogicalResult {
    Value value = graph.lookup(name);
    if (!value)
      return error("output '" + name + "' is not computed by any node");
    outputs.push_back(name);
    values.push_back(value);
    return success();
  };
  if (options.onlyLossOutput) {
    SmallVector<StringRef> names;
    for (const ValueInfoProto &output : declared)
      names.push_back(output.name());
    StringRef wanted = options.lossInput;
    if (wanted.empty() && names.size() > 1)
      return error("the model has " + Twine(names.size()) +
                   " outputs: " + join(names, ", ") +
                   "; say by --loss-input=NAME which of them enters the loss");
    if (wanted.empty())
      wanted = names.front();
    if (!is_contained(names, wanted))
      return error(
          "--loss-input=" + wanted +
          ": the model has no such output; it has: " + join(names, ", "));
    if (failed(add(wanted)))
      return failure();
  } else {
    for (const ValueInfoProto &output : declared)
      if (failed(add(output.name())))
        return failure();
  }
  func::ReturnOp::create(builder, loc, values);
  return success();
}

/// A weight that no output needs which is kept.
void Importer::noteUnreached(const Weight &weight) {
  StringRef name = weight.tensor->name;
  // A running statistic counts, too: nothing computes what would move it.
  bool isStatistic = weight.role == pipeline::Role::Statistic;
  bool trains = !weight.frozen && (isStatistic || roles->others.contains(name));
  // What is tied to another one trains as that.
  if (trains && none_of(weights, [&](const Weight &other) {
        return is_contained(
            map_range(other.tied,
                      [](const Weight::Tied &tied) { return tied.name; }),
            name);
      }))
    unreached.push_back(name);
}

void Importer::dropDeadCode() {
  Block &block = function.getBody().front();
  for (Operation &op : make_early_inc_range(reverse(block)))
    if (!isa<func::ReturnOp>(op) && op.use_empty()) {
      constants.erase(&op);
      op.erase();
    }
  // The arguments: inputs first, then weights.
  SmallVector<const ValueInfoProto *> liveInputs;
  SmallVector<Weight> liveWeights;
  BitVector dead(block.getNumArguments());
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (argument.use_empty()) {
      dead.set(index);
      if (index < inputs.size())
        unusedInputs.push_back(inputs[index]->name());
    } else if (index < inputs.size()) {
      liveInputs.push_back(inputs[index]);
    } else {
      liveWeights.push_back(weights[index - inputs.size()]);
    }
    if (argument.use_empty() && index >= inputs.size())
      noteUnreached(weights[index - inputs.size()]);
  }
  block.eraseArguments(dead);
  inputs = std::move(liveInputs);
  weights = std::move(liveWeights);
}

LogicalResult Importer::bindArguments() {
  Expected<BoundInputs> bound =
      bindInputs(builder.getContext(), inputs, options);
  if (!bound)
    return error(toString(bound.takeError()));
  Block &block = function.getBody().front();
  for (auto [argument, type] : zip(block.getArguments(), bound->types))
    argument.setType(type);
  if (bound->reboundBatch)
    function->setAttr(kReboundBatchAttr,
                      builder.getI64IntegerAttr(*bound->reboundBatch));
  Operation *terminator = block.getTerminator();
  function.setFunctionType(builder.getFunctionType(
      block.getArgumentTypes(), terminator->getOperandTypes()));
  for (auto [index, name] : enumerate(outputs))
    function.setResultAttr(index, kOutputNameAttr, builder.getStringAttr(name));
  return success();
}

OwningOpRef<ModuleOp> Importer::run() {
  // 1. The file.
  Expected<std::unique_ptr<ModelFile>> opened =
      ModelFile::open(path, options.binaryCopy);
  if (!opened) {
    error(toString(opened.takeError()));
    return nullptr;
  }
  file = std::move(*opened);

  // 2. The function: arguments, nodes, outputs.
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, loc, "forward",
                                  builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(&function.getBody().emplaceBlock());
  GraphImporter graph(builder, file->getModel());
  if (failed(graph.prepare()) || failed(importInputs(graph)) ||
      failed(importInitializers(graph)) || failed(graph.importNodes()) ||
      failed(importOutputs(graph)))
    return nullptr;

  // 3. Only what the outputs need; static types for it.
  dropDeadCode();
  if (options.onlyLossOutput) {
    if (failed(checkFoldedNorms()))
      return nullptr;
    warnOfMerged();
    warnOfHeldScalars();
  }
  if (failed(bindArguments()))
    return nullptr;

  // 4. The program around it.
  if (failed(buildProgram(*module)) || failed(mlir::verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> penstock::importModel(MLIRContext *context,
                                            StringRef path,
                                            const ImportOptions &options) {
  context->loadDialect<OnnxDialect, pipeline::PipelineDialect,
                       func::FuncDialect, arith::ArithDialect>();
  return Importer(context, path, options).run();
}
