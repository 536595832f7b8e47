//===- Loops.cpp - The subgraphs of a Loop and a Scan ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both become an `onnx.loop`, which onnx-resolve-shapes unrolls once it is
// known how often it runs. A Scan is a loop over the elements of its scanned
// inputs.
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"
#include "ModelFile.h"

#include "dialects/Onnx/Onnx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

static const GraphProto *findBody(const NodeProto &node) {
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == "body" && attribute.has_g())
      return &attribute.g();
  return nullptr;
}

/// The integers of an attribute, or `count` times `otherwise`.
static SmallVector<int64_t> getIntegers(const NodeProto &node, StringRef name,
                                        unsigned count, int64_t otherwise) {
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return {attribute.ints().begin(), attribute.ints().end()};
  return SmallVector<int64_t>(count, otherwise);
}

/// A loop whose body has its arguments and nothing else yet.
LoopOp GraphImporter::createLoop(const NodeProto &node, const std::string &name,
                                 const Scope &scope, ValueRange inputs,
                                 ArrayRef<int64_t> axes,
                                 ArrayRef<bool> reversed) {
  Type unknown = UnrankedTensorType::get(builder.getF32Type());
  SmallVector<Type> types(inputs.size() - 2 + axes.size(), unknown);
  auto loop = LoopOp::create(builder, getLocation(node, name, scope), types,
                             inputs, axes, reversed);
  if (scope.isBranch)
    loop->setAttr(kBranchAttr, builder.getUnitAttr());
  Block &block = loop.getBody().emplaceBlock();
  for (unsigned i = 0; i < inputs.size(); ++i)
    block.addArgument(unknown, loop.getLoc());
  return loop;
}

LogicalResult GraphImporter::importLoop(const NodeProto &node,
                                        const std::string &name, Scope &scope) {
  SmallVector<Value> inputs;
  if (failed(collectOperands(node, name, scope, inputs)))
    return failure();
  // The number of runs and the condition may be left out at the end, too.
  while (inputs.size() < 2)
    inputs.push_back(
        AbsentOp::create(builder, builder.getUnknownLoc()).getResult());
  const GraphProto *graph = findBody(node);
  if (!graph)
    return emitNodeError(node, name, scope) << "attribute 'body' is missing";
  int carried = static_cast<int>(inputs.size()) - 2;
  int scans = graph->output_size() - 1 - carried;
  if (graph->input_size() != 2 + carried || scans < 0 ||
      node.output_size() > carried + scans)
    return emitNodeError(node, name, scope)
           << "its body takes " << graph->input_size() << " values and gives "
           << graph->output_size() << ", which does not fit its "
           << node.input_size() << " inputs and " << node.output_size()
           << " outputs";

  LoopOp loop =
      createLoop(node, name, scope, inputs, SmallVector<int64_t>(scans, 0),
                 SmallVector<bool>(scans, false));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&loop.getBody().front());
  Scope body = scope;
  body.isBranch = false;
  for (auto [input, argument] :
       zip(graph->input(), loop.getBody().getArguments()))
    body.values[input.name()] = argument;
  SmallVector<Value> yielded;
  if (failed(importBody(*graph, name + "/", body, yielded)))
    return failure();
  YieldOp::create(builder, loop.getLoc(), yielded);
  return defineOutputs(node, name, scope, loop.getOutputs());
}

LogicalResult GraphImporter::importScan(const NodeProto &node,
                                        const std::string &name, Scope &scope) {
  constexpr int64_t kWithoutBatch = 9;
  if (getSince(node, scope) < kWithoutBatch)
    return emitNodeError(node, name, scope)
           << "Scan is supported from opset 9; convert the model with "
              "onnx.version_converter or export it anew";
  // 1. What it takes: carried values, then what it goes over.
  SmallVector<Value> operands;
  if (failed(collectOperands(node, name, scope, operands)))
    return failure();
  const GraphProto *graph = findBody(node);
  int64_t scanned = 0;
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == "num_scan_inputs")
      scanned = attribute.i();
  int64_t carried = static_cast<int64_t>(operands.size()) - scanned;
  if (!graph || scanned < 1 || carried < 0)
    return emitNodeError(node, name, scope)
           << "attributes 'body' and 'num_scan_inputs' must be given, and fit "
              "its inputs";
  int64_t scans = graph->output_size() - carried;
  if (graph->input_size() != node.input_size() || scans < 0 ||
      node.output_size() > graph->output_size())
    return emitNodeError(node, name, scope)
           << "its body takes " << graph->input_size() << " values and gives "
           << graph->output_size() << ", which does not fit its "
           << node.input_size() << " inputs and " << node.output_size()
           << " outputs";
  SmallVector<int64_t> inputAxes =
      getIntegers(node, "scan_input_axes", scanned, 0);
  SmallVector<int64_t> inputReversed =
      getIntegers(node, "scan_input_directions", scanned, 0);
  SmallVector<int64_t> axes = getIntegers(node, "scan_output_axes", scans, 0);
  SmallVector<int64_t> outputReversed =
      getIntegers(node, "scan_output_directions", scans, 0);
  if (int64_t(inputAxes.size()) != scanned ||
      int64_t(inputReversed.size()) != scanned ||
      int64_t(axes.size()) != scans || int64_t(outputReversed.size()) != scans)
    return emitNodeError(node, name, scope)
           << "its axes and directions must be one per scanned input and "
              "output";

  // 2. It runs once per element of what it goes over.
  Location loc = getLocation(node, name, scope);
  bool waits = scope.isBranch;
  auto emit = [&](StringRef type, int64_t since, ValueRange values,
                  ArrayRef<NamedAttribute> params = {}) -> Value {
    auto op = NodeOp::create(
        builder, loc, TypeRange(UnrankedTensorType::get(builder.getF32Type())),
        builder.getStringAttr(type), values, builder.getI64IntegerAttr(since),
        StringAttr(),
        params.empty() ? DictionaryAttr() : builder.getDictionaryAttr(params));
    if (waits)
      op->setAttr(kBranchAttr, builder.getUnitAttr());
    return op.getOutputs().front();
  };
  auto constant = [&](int64_t value) -> Value {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, value));
  };
  auto axisParam = [&](int64_t axis) {
    return builder.getNamedAttr("axis", builder.getI64IntegerAttr(axis));
  };
  Value shape = emit("Shape", 1, operands[carried]);
  Value count =
      emit("Gather", 13, {shape, constant(inputAxes.front())}, axisParam(0));

  // 3. The loop, whose body picks the elements first.
  SmallVector<Value> inputs = {
      count, AbsentOp::create(builder, builder.getUnknownLoc()).getResult()};
  append_range(inputs, ArrayRef<Value>(operands).take_front(carried));
  LoopOp loop = createLoop(
      node, name, scope, inputs, axes,
      map_to_vector(outputReversed, [](int64_t flag) { return flag != 0; }));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = loop.getBody().front();
  builder.setInsertionPointToStart(&block);
  Scope body = scope;
  body.isBranch = waits = false; // In the body, the loop waits for all.
  for (int64_t i = 0; i < carried; ++i)
    body.values[graph->input(i).name()] = block.getArgument(2 + i);
  Value run = block.getArgument(0);
  for (int64_t i = 0; i < scanned; ++i) {
    Value position = run;
    if (inputReversed[i] != 0)
      position = emit("Sub", 14, {emit("Sub", 14, {count, constant(1)}), run});
    body.values[graph->input(carried + i).name()] =
        emit("Gather", 13, {operands[carried + i], position},
             axisParam(inputAxes[i]));
  }
  SmallVector<Value> yielded = {block.getArgument(1)};
  if (failed(importBody(*graph, name + "/", body, yielded)))
    return failure();
  YieldOp::create(builder, loop.getLoc(), yielded);
  return defineOutputs(node, name, scope, loop.getOutputs());
}
