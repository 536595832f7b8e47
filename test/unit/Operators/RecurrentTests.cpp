//===- RecurrentTests.cpp - Values of RNN, GRU and LSTM -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against the equations of the specification, step by step in f64.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

#include <functional>

using namespace penstock::test;

namespace {

constexpr int64_t steps = 4, batch = 3, inputs = 5, hidden = 2;
using Vector = std::vector<double>;

struct Options {
  std::string cell, direction = "forward";
  bool layout = false, linear = false, coupled = false, optional = true;
  double clip = 0;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One direction over the sequence; states are [batch][hidden].
struct Reference {
  const Options &options;
  int64_t gates, direction;
  std::vector<float> x, w, r, b, p;
  Vector h, c;
  std::vector<Vector> outputs;

  double clipped(double v) const {
    return options.clip > 0 ? std::clamp(v, -options.clip, options.clip) : v;
  }
  /// Row `row` of W with x, of R with `state`, both without bias.
  double fromInput(int64_t step, int64_t sample, int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i)
      sum += w[(direction * gates * hidden + row) * inputs + i] *
             x[(step * batch + sample) * inputs + i];
    return sum;
  }
  double fromState(const Vector &state, int64_t sample, int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < hidden; ++i)
      sum += r[(direction * gates * hidden + row) * hidden + i] *
             state[sample * hidden + i];
    return sum;
  }
  double bias(bool recurrent, int64_t row) const {
    return b.empty() ? 0
                     : b[direction * 2 * gates * hidden +
                         recurrent * gates * hidden + row];
  }
  double peephole(int64_t gate, int64_t j) const {
    return p.empty() ? 0 : p[(direction * 3 + gate) * hidden + j];
  }
  void run() {
    bool backwards = options.direction == "reverse" || direction == 1;
    outputs.resize(steps);
    for (int64_t i = 0; i < steps; ++i) {
      int64_t step = backwards ? steps - 1 - i : i;
      Vector next(batch * hidden);
      Vector reset(batch * hidden), kept(batch * hidden);
      auto linear = [&](int64_t s, int64_t row) {
        return fromInput(step, s, row) + fromState(h, s, row) +
               bias(false, row) + bias(true, row);
      };
      if (options.cell == "GRU")
        for (int64_t s = 0; s < batch; ++s)
          for (int64_t j = 0; j < hidden; ++j) {
            reset[s * hidden + j] = sigmoid(clipped(linear(s, hidden + j)));
            kept[s * hidden + j] = reset[s * hidden + j] * h[s * hidden + j];
          }
      for (int64_t s = 0; s < batch; ++s)
        for (int64_t j = 0; j < hidden; ++j) {
          double old = c[s * hidden + j];
          double &out = next[s * hidden + j];
          if (options.cell == "RNN") {
            out = std::tanh(clipped(linear(s, j)));
          } else if (options.cell == "GRU") {
            double update = sigmoid(clipped(linear(s, j)));
            int64_t row = 2 * hidden + j;
            double inner = options.linear
                               ? reset[s * hidden + j] *
                                     (fromState(h, s, row) + bias(true, row))
                               : fromState(kept, s, row) + bias(true, row);
            double proposed = std::tanh(
                clipped(fromInput(step, s, row) + bias(false, row) + inner));
            out = (1 - update) * proposed + update * h[s * hidden + j];
          } else {
            double open = sigmoid(clipped(linear(s, j) + peephole(0, j) * old));
            double keep = sigmoid(
                clipped(linear(s, 2 * hidden + j) + peephole(2, j) * old));
            if (options.coupled)
              keep = 1 - open;
            double now = keep * old +
                         open * std::tanh(clipped(linear(s, 3 * hidden + j)));
            c[s * hidden + j] = now;
            out =
                sigmoid(clipped(linear(s, hidden + j) + peephole(1, j) * now)) *
                std::tanh(now);
          }
        }
      h = next;
      outputs[step] = h;
    }
  }
};

/// Quarters: sums stay small, and the sigmoids away from their ends.
HostTensor quarters(const Shape &shape, int seed) {
  HostTensor whole = integers<float>(shape, seed);
  std::vector<float> parts;
  for (float value : values<float>(whole))
    parts.push_back(value / 4);
  return tensor<float>(shape, parts);
}

/// [a, b, rest] to [b, a, rest].
HostTensor exchanged(const HostTensor &value) {
  Shape shape = value.shape;
  int64_t rest = value.size() / (shape[0] * shape[1]);
  std::vector<float> from = values<float>(value), to;
  for (int64_t j = 0; j < shape[1]; ++j)
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t k = 0; k < rest; ++k)
        to.push_back(from[(i * shape[1] + j) * rest + k]);
  std::swap(shape[0], shape[1]);
  return tensor<float>(shape, to);
}

void check(const Options &options) {
  SCOPED_TRACE(options.cell + " " + options.direction);
  bool isLstm = options.cell == "LSTM";
  int64_t gates = isLstm ? 4 : options.cell == "GRU" ? 3 : 1;
  int64_t count = options.direction == "bidirectional" ? 2 : 1;
  HostTensor x = quarters({steps, batch, inputs}, 1),
             w = quarters({count, gates * hidden, inputs}, 2),
             r = quarters({count, gates * hidden, hidden}, 3),
             b = quarters({count, 2 * gates * hidden}, 4),
             h = quarters({count, batch, hidden}, 5),
             c = quarters({count, batch, hidden}, 6),
             p = quarters({count, 3 * hidden}, 7);
  std::vector<float> sequence(steps * count * batch * hidden), last, lastCell;
  for (int64_t d = 0; d < count; ++d) {
    Reference reference{options,
                        gates,
                        d,
                        values<float>(x),
                        values<float>(w),
                        values<float>(r),
                        {},
                        {},
                        Vector(batch * hidden),
                        Vector(batch * hidden),
                        {}};
    if (options.optional) {
      reference.b = values<float>(b);
      std::vector<float> startH = values<float>(h), startC = values<float>(c);
      for (int64_t i = 0; i < batch * hidden; ++i) {
        reference.h[i] = startH[d * batch * hidden + i];
        reference.c[i] = startC[d * batch * hidden + i];
      }
      if (isLstm)
        reference.p = values<float>(p);
    }
    reference.run();
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t i = 0; i < batch * hidden; ++i)
        sequence[(step * count + d) * batch * hidden + i] =
            float(reference.outputs[step][i]);
    last.insert(last.end(), reference.h.begin(), reference.h.end());
    lastCell.insert(lastCell.end(), reference.c.begin(), reference.c.end());
  }
  if (options.layout) {
    x = exchanged(x);
    h = exchanged(h);
    c = exchanged(c);
    // [steps, count, batch, hidden] to [batch, steps, count, hidden].
    std::vector<float> moved;
    for (int64_t s = 0; s < batch; ++s)
      for (int64_t step = 0; step < steps; ++step)
        for (int64_t d = 0; d < count; ++d)
          for (int64_t j = 0; j < hidden; ++j)
            moved.push_back(
                sequence[((step * count + d) * batch + s) * hidden + j]);
    sequence = moved;
    for (std::vector<float> *state : {&last, &lastCell})
      *state = values<float>(
          exchanged(tensor<float>({count, batch, hidden}, *state)));
  }
  HostTensor none{"", 0, {}, ""};
  std::vector<HostTensor> operands = {x, w, r};
  if (options.optional) {
    operands.insert(operands.end(), {b, none, h});
    if (isLstm)
      operands.insert(operands.end(), {c, p});
  }
  Shape sequenceShape = options.layout ? Shape{batch, steps, count, hidden}
                                       : Shape{steps, count, batch, hidden};
  Shape stateShape = options.layout ? Shape{batch, count, hidden}
                                    : Shape{count, batch, hidden};
  std::vector<std::pair<int64_t, Shape>> results = {{1, sequenceShape},
                                                    {1, stateShape}};
  if (isLstm)
    results.push_back({1, stateShape});
  std::map<std::string, NodeAttribute> attributes = {
      {"hidden_size", hidden}, {"direction", options.direction}};
  if (options.layout)
    attributes["layout"] = int64_t(1);
  if (options.linear)
    attributes["linear_before_reset"] = int64_t(1);
  if (options.coupled)
    attributes["input_forget"] = int64_t(1);
  if (options.clip > 0)
    attributes["clip"] = float(options.clip);
  Result result =
      run(options.cell, options.layout ? 14 : 7, attributes, operands, results);
  expectNear(result, sequence);
  std::swap(result.outputs[0], result.outputs[1]);
  expectNear(result, last);
  if (isLstm) {
    std::swap(result.outputs[0], result.outputs[2]);
    expectNear(result, lastCell);
  }
}

TEST(Recurrent, FollowsTheEquations) {
  for (const char *cell : {"RNN", "GRU", "LSTM"})
    for (const char *direction : {"forward", "reverse", "bidirectional"})
      check({cell, direction});
}

TEST(Recurrent, HasItsVariants) {
  check({.cell = "LSTM", .optional = false});
  check({.cell = "GRU", .optional = false});
  check({.cell = "RNN", .optional = false});
  check({.cell = "GRU", .direction = "bidirectional", .linear = true});
  check({.cell = "GRU", .linear = true, .optional = false});
  check({.cell = "LSTM", .coupled = true});
  check({.cell = "LSTM", .clip = 0.25});
  check({.cell = "GRU", .clip = 0.25});
  for (const char *cell : {"RNN", "GRU", "LSTM"})
    check({.cell = cell, .direction = "bidirectional", .layout = true});
}

TEST(Recurrent, RefusesSequencesLongerThanTheInput) {
  HostTensor none{"", 0, {}, ""};
  Result result =
      run("RNN", 14, {},
          {quarters({steps, batch, inputs}, 1),
           quarters({1, hidden, inputs}, 2), quarters({1, hidden, hidden}, 3),
           none, tensor<int32_t>({batch}, {4, 5, 4})},
          {{1, {steps, 1, batch, hidden}}}, 4);
  EXPECT_NE(result.error.find("operand 'sequence_lens' has a length of 5"),
            std::string::npos)
      << result.error;
}

} // namespace
