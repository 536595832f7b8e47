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

#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

namespace {

enum class Cell { Rnn, Gru, Lstm };
enum Operand { X, W, R, Bias, Lengths, InitialH, InitialC, Peepholes };

/// A scalar function of the specification, with its parameters.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  Value apply(Emitter &e, Value x) const;
};

struct Recurrence {
  Cell cell;
  int64_t gates;
  int64_t steps, batch, inputs, hidden, directions;
  bool isReverse = false;
  bool batchFirst = false;
  bool linearBeforeReset = false, inputForget = false;
  double clip = 0;
  /// Per direction, those of a cell one after another.
  SmallVector<Activation> activations;

  LogicalResult bind(NodeBinder &node, Cell cell);
  RankedTensorType sequenceType(NodeBinder &node) const;
  RankedTensorType stateType(NodeBinder &node) const;

private:
  LogicalResult bindActivations(NodeBinder &node);
  LogicalResult bindShapes(NodeBinder &node);
  LogicalResult checkShape(NodeBinder &node, unsigned i,
                           ArrayRef<int64_t> expected);
};

} // namespace

//===--- Attributes and shapes ---===//

/// The specification's defaults of alpha and beta; false: no such function.
static bool setDefaults(Activation &activation) {
  struct Entry {
    StringRef name;
    double alpha, beta;
  };
  static const Entry entries[] = {
      {"Relu", 0, 0},         {"Tanh", 0, 0},
      {"Sigmoid", 0, 0},      {"Affine", 1, 0},
      {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
      {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
      {"Elu", 1, 0},          {"Softsign", 0, 0},
      {"Softplus", 0, 0}};
  for (const Entry &entry : entries)
    if (entry.name.equals_insensitive(activation.name)) {
      activation = {entry.name.str(), entry.alpha, entry.beta};
      return true;
    }
  return false;
}

Value Activation::apply(Emitter &e, Value x) const {
  Type type = x.getType();
  auto number = [&](double value) { return e.scalar(type, value); };
  auto exp = [&](Value v) -> Value {
    return math::ExpOp::create(e.builder, e.loc, v);
  };
  auto negative = [&](Value v) -> Value {
    return arith::NegFOp::create(e.builder, e.loc, v);
  };
  Value zero = number(0), one = number(1);
  if (name == "Relu")
    return e.max(x, zero);
  if (name == "Tanh")
    return math::TanhOp::create(e.builder, e.loc, x);
  if (name == "Sigmoid")
    return e.div(one, e.add(one, exp(negative(x))));
  if (name == "Affine")
    return e.add(e.mul(number(alpha), x), number(beta));
  if (name == "LeakyRelu")
    return e.select(e.less(zero, x), x, e.mul(number(alpha), x));
  if (name == "ThresholdedRelu")
    return e.select(e.less(number(alpha), x), x, zero);
  if (name == "ScaledTanh") {
    Value inner =
        math::TanhOp::create(e.builder, e.loc, e.mul(number(beta), x));
    return e.mul(number(alpha), inner);
  }
  if (name == "HardSigmoid")
    return e.max(zero,
                 e.min(one, e.add(e.mul(number(alpha), x), number(beta))));
  if (name == "Elu") {
    // Finite where it is not chosen, so that the derivative is a number.
    Value power = exp(e.min(x, zero));
    return e.select(e.less(x, zero), e.mul(number(alpha), e.sub(power, one)),
                    x);
  }
  if (name == "Softsign")
    return e.div(x, e.add(one, math::AbsFOp::create(e.builder, e.loc, x)));
  // Softplus: x itself from where it rounds to it.
  Value limit = number(20);
  Value power = exp(e.min(x, limit));
  return e.select(e.less(limit, x), x,
                  math::Log1pOp::create(e.builder, e.loc, power));
}

LogicalResult Recurrence::bindActivations(NodeBinder &node) {
  SmallVector<StringRef> defaults = {"Tanh"};
  if (cell == Cell::Gru)
    defaults = {"Sigmoid", "Tanh"};
  if (cell == Cell::Lstm)
    defaults = {"Sigmoid", "Tanh", "Tanh"};
  SmallVector<StringRef> names;
  for (int64_t d = 0; d < directions; ++d)
    llvm::append_range(names, defaults);
  if (Attribute given = node.node.getParam("activations")) {
    auto list = dyn_cast<ArrayAttr>(given);
    if (!list || list.size() != names.size() ||
        !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return node.badAttribute("activations", Twine(names.size()) + " names");
    names.clear();
    for (auto name : list.getAsRange<StringAttr>())
      names.push_back(name.getValue());
  }
  // Parameters are listed for the functions that have some, in order.
  SmallVector<float> alphas, betas;
  for (auto [name, numbers] : {std::pair("activation_alpha", &alphas),
                               std::pair("activation_beta", &betas)})
    if (auto list =
            dyn_cast_or_null<DenseF32ArrayAttr>(node.node.getParam(name)))
      llvm::append_range(*numbers, list.asArrayRef());
  size_t alpha = 0, beta = 0;
  for (StringRef name : names) {
    Activation activation{name.str()};
    if (!setDefaults(activation))
      return node.badAttribute("activations",
                               "of the functions that ONNX lists");
    StringRef known = activation.name;
    bool hasBeta =
        known == "Affine" || known == "ScaledTanh" || known == "HardSigmoid";
    bool hasAlpha = hasBeta || known == "LeakyRelu" ||
                    known == "ThresholdedRelu" || known == "Elu";
    if (hasAlpha && alpha < alphas.size())
      activation.alpha = alphas[alpha++];
    if (hasBeta && beta < betas.size())
      activation.beta = betas[beta++];
    activations.push_back(activation);
  }
  return success();
}

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
                      << RankedTensorType::get(expected, node.elementType(X));
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
  if (!node.has(Lengths))
    return success();
  SmallVector<int64_t> lengths;
  if (failed(node.constantIntegers(Lengths, lengths)))
    return failure();
  for (int64_t length : lengths)
    if (length != steps)
      return node.error() << "operand 'sequence_lens' has a length of "
                          << length << ", and sequences shorter than the "
                          << steps
                          << " steps of 'X' are not supported; leave "
                             "it out and mask the loss (--ignore-label)";
  return success();
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
  return RankedTensorType::get(shape, node.elementType(X));
}

RankedTensorType Recurrence::stateType(NodeBinder &node) const {
  SmallVector<int64_t> shape = {directions, batch, hidden};
  if (batchFirst)
    shape = {batch, directions, hidden};
  return RankedTensorType::get(shape, node.elementType(X));
}

template <Cell cell>
static LogicalResult inferRecurrence(NodeBinder &node, Types &types) {
  Recurrence recurrence;
  if (failed(recurrence.bind(node, cell)))
    return failure();
  unsigned most = cell == Cell::Lstm ? 3 : 2;
  for (unsigned i = 0; i < node.node.getNumResults() && i < most; ++i)
    types.push_back(i == 0 ? recurrence.sequenceType(node)
                           : recurrence.stateType(node));
  return success();
}

//===--- The steps ---===//

namespace {

/// Emits one direction.
class DirectionWriter {
public:
  DirectionWriter(NodeBinder &node, Emitter &emitter,
                  const Recurrence &recurrence, int64_t direction);

  /// The states after each step, by their place in the sequence.
  void run(Value inputs);
  SmallVector<Value> outputs;
  /// The state at the end.
  Value hidden, cell;

private:
  Value slice(Value value, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes);
  /// The part of this direction of an operand [directions, ...].
  Value ofDirection(Value value);
  Value initial(unsigned operand);
  /// A gate's columns of [batch, gates * hidden].
  Value gate(Value all, int64_t number);
  /// A gate's part of a bias [.. * hidden].
  Value part(Value all, int64_t number);
  Value product(Value left, Value right, RankedTensorType type);
  Value activate(Emitter &e, unsigned number, Value x) const;
  Value elementwise(ArrayRef<Value> operands, Emitter::Body body) {
    return emitter.elementwise(state, operands, body);
  }
  void stepRnn(Value input);
  void stepGru(Value input);
  void stepLstm(Value input);

  NodeBinder &node;
  Emitter &emitter;
  const Recurrence &r;
  int64_t direction;
  Type element;
  RankedTensorType state;
  Value recurrent, recurrentBias, peepholes;
};

} // namespace

DirectionWriter::DirectionWriter(NodeBinder &node, Emitter &emitter,
                                 const Recurrence &recurrence,
                                 int64_t direction)
    : node(node), emitter(emitter), r(recurrence), direction(direction),
      element(node.elementType(X)),
      state(RankedTensorType::get({recurrence.batch, recurrence.hidden},
                                  element)) {}

Value DirectionWriter::slice(Value value, ArrayRef<int64_t> offsets,
                             ArrayRef<int64_t> sizes) {
  if (Emitter::shapeOf(value) == sizes)
    return value;
  auto list = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(values, [&](int64_t number) -> OpFoldResult {
      return emitter.builder.getIndexAttr(number);
    });
  };
  SmallVector<int64_t> ones(sizes.size(), 1);
  return tensor::ExtractSliceOp::create(
      emitter.builder, emitter.loc, RankedTensorType::get(sizes, element),
      value, list(offsets), list(sizes), list(ones));
}

Value DirectionWriter::ofDirection(Value value) {
  SmallVector<int64_t> offsets(Emitter::shapeOf(value).size(), 0);
  SmallVector<int64_t> sizes(Emitter::shapeOf(value));
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
    if (r.cell == Cell::Rnn)
      stepRnn(input);
    else if (r.cell == Cell::Gru)
      stepGru(input);
    else
      stepLstm(input);
    outputs[step] = hidden;
  }
}

void DirectionWriter::stepRnn(Value input) {
  Value before = product(hidden, recurrent, state);
  hidden = elementwise({input, before}, [&](Emitter &e, ArrayRef<Value> in) {
    return activate(e, 0, e.add(in[0], in[1]));
  });
}

void DirectionWriter::stepGru(Value input) {
  enum { Update, Reset, New };
  auto activated = [&](Value a, Value b, Value bias) {
    SmallVector<Value> operands = {a, b};
    if (bias)
      operands.push_back(bias);
    return elementwise(operands, [&](Emitter &e, ArrayRef<Value> in) {
      Value sum = in.size() == 3 ? e.add(in[1], in[2]) : in[1];
      return activate(e, 0, e.add(in[0], sum));
    });
  };
  // The rows of R in two parts where the last depends on the reset.
  int64_t rows = r.linearBeforeReset ? 3 * r.hidden : 2 * r.hidden;
  Value weights = slice(recurrent, {0, 0}, {rows, r.hidden});
  Value before =
      product(hidden, weights, RankedTensorType::get({r.batch, rows}, element));
  Value updateBias, resetBias, newBias;
  if (r.linearBeforeReset && recurrentBias) {
    updateBias = part(recurrentBias, Update);
    resetBias = part(recurrentBias, Reset);
    newBias = part(recurrentBias, New);
  }
  Value update =
      activated(gate(input, Update), gate(before, Update), updateBias);
  Value reset = activated(gate(input, Reset), gate(before, Reset), resetBias);
  Value inner;
  if (r.linearBeforeReset) {
    SmallVector<Value> operands = {reset, gate(before, New)};
    if (newBias)
      operands.push_back(newBias);
    inner = elementwise(operands, [&](Emitter &e, ArrayRef<Value> in) {
      Value linear = in.size() == 3 ? e.add(in[1], in[2]) : in[1];
      return e.mul(in[0], linear);
    });
  } else {
    Value kept =
        elementwise({reset, hidden}, [](Emitter &e, ArrayRef<Value> in) {
          return e.mul(in[0], in[1]);
        });
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
  Value before =
      product(hidden, recurrent,
              RankedTensorType::get({r.batch, 4 * r.hidden}, element));
  SmallVector<Value> operands;
  for (int64_t number : {Input, Forget, New})
    operands.append({gate(input, number), gate(before, number)});
  operands.push_back(cell);
  // Peepholes come in the order input, output, forget.
  if (peepholes)
    operands.append({part(peepholes, 0), part(peepholes, 2)});
  cell = elementwise(operands, [&](Emitter &e, ArrayRef<Value> in) {
    Value old = in[6];
    Value open = e.add(in[0], in[1]), keep = e.add(in[2], in[3]);
    if (peepholes) {
      open = e.add(open, e.mul(in[7], old));
      keep = e.add(keep, e.mul(in[8], old));
    }
    open = activate(e, 0, open);
    keep = r.inputForget ? e.sub(e.scalar(element, 1), open)
                         : activate(e, 0, keep);
    Value proposed = activate(e, 1, e.add(in[4], in[5]));
    return e.add(e.mul(keep, old), e.mul(open, proposed));
  });
  SmallVector<Value> last = {gate(input, Output), gate(before, Output), cell};
  if (peepholes)
    last.push_back(part(peepholes, 1));
  hidden = elementwise(last, [&](Emitter &e, ArrayRef<Value> in) {
    Value open = e.add(in[0], in[1]);
    if (peepholes)
      open = e.add(open, e.mul(in[3], in[2]));
    open = activate(e, 0, open);
    // The cell itself is not clipped.
    unsigned each = r.activations.size() / r.directions;
    Value shown = r.activations[direction * each + 2].apply(e, in[2]);
    return e.mul(open, shown);
  });
}

template <Cell kind>
static LogicalResult lowerRecurrence(NodeBinder &node, OpBuilder &builder,
                                     Values &results) {
  Recurrence r;
  if (failed(r.bind(node, kind)))
    return failure();
  Emitter emitter(builder, node.getLoc());
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
      MLIRContext *context = builder.getContext();
      SmallVector<int64_t> size = {r.batch, r.hidden}, ones = {1, 1};
      all = emitter.empty(RankedTensorType::get(
          {static_cast<int64_t>(parts.size()) * r.batch, r.hidden},
          node.elementType(X)));
      SmallVector<int64_t> offsets = {0, 0};
      for (Value part : parts) {
        all = tensor::InsertSliceOp::create(
            builder, node.getLoc(), part, all,
            getAsIndexOpFoldResult(context, offsets),
            getAsIndexOpFoldResult(context, size),
            getAsIndexOpFoldResult(context, ones));
        offsets[0] += r.batch;
      }
    }
    all = emitter.reshape(all, shape);
    return r.batchFirst ? emitter.transpose(all, order) : all;
  };
  results.push_back(stack(sequence, {r.steps, r.directions, r.batch, r.hidden},
                          {2, 0, 1, 3}));
  unsigned count = node.node.getNumResults();
  SmallVector<int64_t> state = {r.directions, r.batch, r.hidden};
  if (count > 1)
    results.push_back(stack(lastHidden, state, {1, 0, 2}));
  if (count > 2)
    results.push_back(stack(lastCell, state, {1, 0, 2}));
  return success();
}

void penstock::onnx::addRecurrent(OperatorTable &table) {
  table.add("RNN", {7, 14, 22}, inferRecurrence<Cell::Rnn>, nullptr,
            lowerRecurrence<Cell::Rnn>);
  table.add("GRU", {7, 14, 22}, inferRecurrence<Cell::Gru>, nullptr,
            lowerRecurrence<Cell::Gru>);
  table.add("LSTM", {7, 14, 22}, inferRecurrence<Cell::Lstm>, nullptr,
            lowerRecurrence<Cell::Lstm>);
}
