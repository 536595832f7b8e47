//===- RecurrentSteps.cpp - The steps of one direction --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step has the product with R and two or three elementwise ops. See
// Recurrent.h.
//===----------------------------------------------------------------------===//

#include "Recurrent.h"

using namespace mlir;
using namespace penstock::onnx;
using namespace penstock::onnx::recurrent;

DirectionWriter::DirectionWriter(NodeBinder &node, Emitter &emitter,
                                 const Recurrence &recurrence,
                                 int64_t direction)
    : node(node), emitter(emitter), r(recurrence), direction(direction),
      element(node.elementType(X)),
      state(RankedTensorType::get({recurrence.batch, recurrence.hidden},
                                  element)) {}

Value DirectionWriter::slice(Value value, ArrayRef<int64_t> offsets,
                             ArrayRef<int64_t> sizes) {
  if (Emitter::getShape(value) == sizes)
    return value;
  auto list = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(values, [&](int64_t number) -> OpFoldResult {
      return emitter.builder.getIndexAttr(number);
    });
  };
  SmallVector<int64_t> ones(sizes.size(), 1);
  return emitter.make<tensor::ExtractSliceOp>(
      RankedTensorType::get(sizes, element), value, list(offsets), list(sizes),
      list(ones));
}

Value DirectionWriter::ofDirection(Value value) {
  SmallVector<int64_t> offsets(Emitter::getShape(value).size(), 0);
  SmallVector<int64_t> sizes(Emitter::getShape(value));
  offsets[0] = direction;
  sizes[0] = 1;
  return emitter.reshape(slice(value, offsets, sizes),
                         ArrayRef(sizes).drop_front());
}

Value DirectionWriter::initial(unsigned operand) {
  if (!node.has(operand))
    return emitter.filled(state, emitter.scalar(element, 0));
  Value value = node.operand(operand);
  if (r.batchFirst)
    value = emitter.transpose(value, {1, 0, 2});
  return ofDirection(value);
}

Value DirectionWriter::gate(Value all, int64_t number) {
  return slice(all, {0, number * r.hidden}, {r.batch, r.hidden});
}

Value DirectionWriter::part(Value all, int64_t number) {
  return slice(all, {number * r.hidden}, {r.hidden});
}

/// left . right^T
Value DirectionWriter::product(Value left, Value right, RankedTensorType type) {
  return emitter.contract(
      left, right, type,
      {emitter.map(3, {0, 2}), emitter.map(3, {1, 2}), emitter.map(3, {0, 1})});
}

Value DirectionWriter::activate(Emitter &e, unsigned number, Value x) const {
  if (r.clip > 0) {
    Value limit = e.scalar(element, r.clip);
    x = e.max(e.min(x, limit), e.scalar(element, -r.clip));
  }
  unsigned each = r.activations.size() / r.directions;
  return r.activations[direction * each + number].apply(e, x);
}

void DirectionWriter::run(Value inputs) {
  int64_t rows = r.gates * r.hidden;
  Value weights = ofDirection(node.operand(W));
  recurrent = ofDirection(node.operand(R));
  // 1. All inputs at once: [steps * batch, gates * hidden], with the biases.
  // GRU with the reset behind the product needs that of R by itself.
  auto all = RankedTensorType::get({r.steps * r.batch, rows}, element);
  Value projected = product(inputs, weights, all);
  bool biasApart = r.cell == Cell::Gru && r.linearBeforeReset;
  if (node.has(Bias)) {
    Value both = ofDirection(node.operand(Bias));
    SmallVector<Value> operands = {projected, slice(both, {0}, {rows})};
    recurrentBias = slice(both, {rows}, {rows});
    if (!biasApart)
      operands.push_back(recurrentBias);
    projected = emitter.elementwise(
        all, operands, [](Emitter &inside, ArrayRef<Value> scalars) {
          Value sum = inside.add(scalars[0], scalars[1]);
          return scalars.size() == 3 ? inside.add(sum, scalars[2]) : sum;
        });
  }
  if (r.isRagged)
    lengths = emitter.reshape(node.operand(Lengths), {r.batch, 1});
  if (node.size() > Peepholes && node.has(Peepholes))
    peepholes = ofDirection(node.operand(Peepholes));

  // 2. The steps.
  hidden = initial(InitialH);
  if (r.cell == Cell::Lstm)
    cell = node.size() > InitialC
               ? initial(InitialC)
               : emitter.filled(state, emitter.scalar(element, 0));
  outputs.resize(r.steps);
  bool backwards = r.isReverse || direction == 1;
  for (int64_t i = 0; i < r.steps; ++i) {
    int64_t step = backwards ? r.steps - 1 - i : i;
    Value input = slice(projected, {step * r.batch, 0}, {r.batch, rows});
    Value oldHidden = hidden, oldCell = cell;
    isFirst = i == 0;
    if (r.cell == Cell::Rnn)
      stepRnn(input);
    else if (r.cell == Cell::Gru)
      stepGru(input);
    else
      stepLstm(input);
    outputs[step] = hidden;
    if (!r.isRagged)
      continue;
    // Behind its end a sequence has zeros, and its state stays. One that is
    // read from the last step on thus begins at its own end.
    outputs[step] = keepWhere(
        step, hidden, emitter.filled(state, emitter.scalar(element, 0)));
    hidden = keepWhere(step, hidden, oldHidden);
    if (cell)
      cell = keepWhere(step, cell, oldCell);
  }
}

Value DirectionWriter::keepWhere(int64_t step, Value value, Value other) {
  return elementwise(
      {lengths, value, other}, [&](Emitter &e, ArrayRef<Value> in) {
        Value isThere =
            e.less(e.scalar(in[0].getType(), static_cast<double>(step)), in[0]);
        return e.select(isThere, in[1], in[2]);
      });
}

Value DirectionWriter::emitAdd(Value a, Value b) {
  return emitter.elementwise(Emitter::getType(a), {a, b}, &Emitter::add);
}

Value DirectionWriter::activated(Value a, Value b) {
  SmallVector<Value> operands = {a, b};
  if (isFirst)
    operands = {emitAdd(a, b)};
  return elementwise(operands, [&](Emitter &e, ArrayRef<Value> in) {
    return activate(e, 0, in.size() == 1 ? in[0] : e.add(in[0], in[1]));
  });
}

void DirectionWriter::stepRnn(Value input) {
  hidden = activated(input, product(hidden, recurrent, state));
}

void DirectionWriter::stepGru(Value input) {
  enum { Update, Reset, New };
  // The rows of R in two parts where the last depends on the reset.
  int64_t rows = r.linearBeforeReset ? 3 * r.hidden : 2 * r.hidden;
  Value weights = slice(recurrent, {0, 0}, {rows, r.hidden});
  auto type = RankedTensorType::get({r.batch, rows}, element);
  Value before = product(hidden, weights, type);
  if (r.linearBeforeReset && recurrentBias)
    before = emitAdd(before, recurrentBias);
  Value update = activated(gate(input, Update), gate(before, Update));
  Value reset = activated(gate(input, Reset), gate(before, Reset));
  Value inner;
  if (r.linearBeforeReset) {
    inner = elementwise({reset, gate(before, New)}, &Emitter::mul);
  } else {
    Value kept = elementwise({reset, hidden}, &Emitter::mul);
    inner =
        product(kept, slice(recurrent, {rows, 0}, {r.hidden, r.hidden}), state);
  }
  hidden =
      elementwise({gate(input, New), inner, update, hidden},
                  [&](Emitter &e, ArrayRef<Value> in) {
                    Value proposed = activate(e, 1, e.add(in[0], in[1]));
                    Value rest = e.sub(e.scalar(element, 1), in[2]);
                    return e.add(e.mul(rest, proposed), e.mul(in[2], in[3]));
                  });
}

void DirectionWriter::stepLstm(Value input) {
  enum { Input, Output, Forget, New };
  auto type = RankedTensorType::get({r.batch, 4 * r.hidden}, element);
  Value before = product(hidden, recurrent, type);
  if (isFirst) {
    input = emitAdd(input, before);
    before = emitter.filled(type, emitter.scalar(element, 0));
  }
  // Peepholes come in the order input, output, forget. What they show is a
  // value of the forward, too.
  auto shown = [&](int64_t number, Value state) {
    return elementwise({part(peepholes, number), state}, &Emitter::mul);
  };
  SmallVector<Value> operands;
  for (int64_t number : {Input, Forget, New})
    operands.append({gate(input, number), gate(before, number)});
  operands.push_back(cell);
  if (peepholes && isFirst) {
    operands[0] = emitAdd(operands[0], shown(0, cell));
    operands[2] = emitAdd(operands[2], shown(2, cell));
  } else if (peepholes) {
    operands.append({shown(0, cell), shown(2, cell)});
  }
  cell = elementwise(operands, [&](Emitter &e, ArrayRef<Value> in) {
    Value old = in[6];
    Value open = e.add(in[0], in[1]), keep = e.add(in[2], in[3]);
    if (in.size() > 7) {
      open = e.add(open, in[7]);
      keep = e.add(keep, in[8]);
    }
    open = activate(e, 0, open);
    keep = r.inputForget ? e.sub(e.scalar(element, 1), open)
                         : activate(e, 0, keep);
    Value proposed = activate(e, 1, e.add(in[4], in[5]));
    return e.add(e.mul(keep, old), e.mul(open, proposed));
  });
  SmallVector<Value> last = {gate(input, Output), gate(before, Output), cell};
  if (peepholes)
    last.push_back(shown(1, cell));
  hidden = elementwise(last, [&](Emitter &e, ArrayRef<Value> in) {
    Value open = e.add(in[0], in[1]);
    if (peepholes)
      open = e.add(open, in[3]);
    open = activate(e, 0, open);
    // The cell itself is not clipped.
    unsigned each = r.activations.size() / r.directions;
    Value shown = r.activations[direction * each + 2].apply(e, in[2]);
    return e.mul(open, shown);
  });
}
