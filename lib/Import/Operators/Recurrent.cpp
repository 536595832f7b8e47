//===- Recurrent.cpp - RNN, GRU and LSTM ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sequence is unrolled: its length is static, and what a step leaves for
// the backward is a value like any other, so that cuts, recomputation and
// versions of weights need nothing new. The products of all inputs with W are
// one product in front; a step then has the product with R and two or three
// elementwise ops. The IR grows with the sequence.
//===----------------------------------------------------------------------===//

#include "Recurrent.h"

#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;
using namespace penstock::onnx::recurrent;

//===--- Attributes and shapes ---===//

LogicalResult Recurrence::checkShape(NodeBinder &node, unsigned i,
                                     ArrayRef<int64_t> expected) {
  if (!node.has(i))
    return success();
  if (failed(node.requireSameElementType(X, i)))
    return failure();
  if (node.shape(i) == expected)
    return success();
  return node.error() << "operand '" << node.operandName(i) << "' is "
                      << node.type(i) << ", it must be "
                      << node.makeType(expected, X);
}

LogicalResult Recurrence::bindLengths(NodeBinder &node) {
  if (!node.has(Lengths))
    return success();
  if (failed(node.requireInteger(Lengths)))
    return failure();
  if (node.shape(Lengths) != ArrayRef<int64_t>({batch}))
    return node.error() << "operand 'sequence_lens' is " << node.type(Lengths)
                        << ", it must have the length of each of the " << batch
                        << " sequences";
  isRagged = true;
  if (!node.constant(Lengths))
    return success();
  SmallVector<int64_t> lengths;
  if (failed(node.constantIntegers(Lengths, lengths)))
    return failure();
  for (int64_t length : lengths)
    if (length < 0 || length > steps)
      return node.error() << "operand 'sequence_lens' has a length of "
                          << length << ", and 'X' has " << steps << " steps";
  isRagged =
      llvm::any_of(lengths, [&](int64_t length) { return length != steps; });
  return success();
}

LogicalResult Recurrence::bindShapes(NodeBinder &node) {
  for (unsigned i : {X, W, R})
    if (node.rank(i) != 3)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must have 3 axes";
  steps = node.shape(X)[batchFirst ? 1 : 0];
  batch = node.shape(X)[batchFirst ? 0 : 1];
  inputs = node.shape(X)[2];
  hidden = node.shape(R)[2];
  std::optional<int64_t> given;
  if (failed(node.attribute("hidden_size", given)))
    return failure();
  if (given && *given != hidden)
    return node.badAttribute("hidden_size",
                             Twine(hidden) + ", as operand 'R' has it");
  int64_t rows = gates * hidden;
  SmallVector<int64_t> state = {directions, batch, hidden};
  if (batchFirst)
    state = {batch, directions, hidden};
  if (failed(checkShape(node, W, {directions, rows, inputs})) ||
      failed(checkShape(node, R, {directions, rows, hidden})) ||
      failed(checkShape(node, Bias, {directions, 2 * rows})) ||
      failed(checkShape(node, InitialH, state)))
    return failure();
  if (cell == Cell::Lstm &&
      (failed(checkShape(node, InitialC, state)) ||
       failed(checkShape(node, Peepholes, {directions, 3 * hidden}))))
    return failure();
  if (steps == 0 || batch == 0)
    return node.error() << "operand 'X' is " << node.type(X)
                        << ", and has no steps";
  return bindLengths(node);
}

LogicalResult Recurrence::bind(NodeBinder &node, Cell kind) {
  cell = kind;
  gates = cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
  LogicalResult named =
      cell == Cell::Lstm
          ? node.operands({"X", "W", "R", "B", "sequence_lens", "initial_h",
                           "initial_c", "P"},
                          3)
          : node.operands({"X", "W", "R", "B", "sequence_lens", "initial_h"},
                          3);
  std::string direction = "forward";
  if (failed(named) || failed(node.requireFloat(X)) ||
      failed(node.attribute("direction", direction)) ||
      failed(node.attribute("layout", batchFirst)) ||
      failed(node.attribute("linear_before_reset", linearBeforeReset)) ||
      failed(node.attribute("input_forget", inputForget)) ||
      failed(node.attribute("clip", clip)))
    return failure();
  if (direction != "forward" && direction != "reverse" &&
      direction != "bidirectional")
    return node.badAttribute("direction",
                             "\"forward\", \"reverse\" or \"bidirectional\"");
  isReverse = direction == "reverse";
  directions = direction == "bidirectional" ? 2 : 1;
  if (clip < 0)
    return node.badAttribute("clip", "a number that is not negative");
  return success(succeeded(bindActivations(node)) &&
                 succeeded(bindShapes(node)));
}

RankedTensorType Recurrence::sequenceType(NodeBinder &node) const {
  SmallVector<int64_t> shape = {steps, directions, batch, hidden};
  if (batchFirst)
    shape = {batch, steps, directions, hidden};
  return node.makeType(shape, X);
}

RankedTensorType Recurrence::stateType(NodeBinder &node) const {
  SmallVector<int64_t> shape = {directions, batch, hidden};
  if (batchFirst)
    shape = {batch, directions, hidden};
  return node.makeType(shape, X);
}

static Types inferRecurrence(Recurrence &recurrence, NodeBinder &node) {
  SmallVector<Type> types = {recurrence.sequenceType(node)};
  unsigned most = recurrence.cell == Cell::Lstm ? 3 : 2;
  for (unsigned i = 1; i < node.node.getNumResults() && i < most; ++i)
    types.push_back(recurrence.stateType(node));
  return types;
}

//===--- Both directions ---===//

static Values lowerRecurrence(Recurrence &r, NodeBinder &node,
                              Emitter &emitter) {
  Value x = node.operand(X);
  if (r.batchFirst)
    x = emitter.transpose(x, {1, 0, 2});
  Value inputs = emitter.reshape(x, {r.steps * r.batch, r.inputs});
  SmallVector<Value> sequence, lastHidden, lastCell;
  SmallVector<DirectionWriter> writers;
  for (int64_t d = 0; d < r.directions; ++d) {
    writers.emplace_back(node, emitter, r, d);
    writers.back().run(inputs);
    lastHidden.push_back(writers.back().hidden);
    lastCell.push_back(writers.back().cell);
  }
  for (int64_t step = 0; step < r.steps; ++step)
    for (DirectionWriter &writer : writers)
      sequence.push_back(writer.outputs[step]);
  // One below the other, then with their axes.
  auto stack = [&](ArrayRef<Value> parts, ArrayRef<int64_t> shape,
                   ArrayRef<int64_t> order) {
    Value all = parts.front();
    if (parts.size() > 1) {
      all = emitter.empty(node.makeType(
          {static_cast<int64_t>(parts.size()) * r.batch, r.hidden}, X));
      SmallVector<int64_t> offsets = {0, 0};
      for (Value part : parts) {
        all = emitter.insert(part, all, offsets);
        offsets[0] += r.batch;
      }
    }
    all = emitter.reshape(all, shape);
    return r.batchFirst ? emitter.transpose(all, order) : all;
  };
  SmallVector<Value> results = {stack(
      sequence, {r.steps, r.directions, r.batch, r.hidden}, {2, 0, 1, 3})};
  unsigned count = node.node.getNumResults();
  SmallVector<int64_t> state = {r.directions, r.batch, r.hidden};
  if (count > 1)
    results.push_back(stack(lastHidden, state, {1, 0, 2}));
  if (count > 2)
    results.push_back(stack(lastCell, state, {1, 0, 2}));
  return results;
}

template <Cell cell> static void addCell(OperatorTable &table, StringRef name) {
  table.add(name, {7, 14, 22}, bound<inferRecurrence, cell>, nullptr,
            bound<lowerRecurrence, cell>);
}

void penstock::onnx::addRecurrent(OperatorTable &table) {
  addCell<Cell::Rnn>(table, "RNN");
  addCell<Cell::Gru>(table, "GRU");
  addCell<Cell::Lstm>(table, "LSTM");
}
