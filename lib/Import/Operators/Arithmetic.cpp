//===- Arithmetic.cpp - Elementwise arithmetic ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that are one scalar function at every index, over operands that
// broadcast as numpy says.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

//===--- Two operands ---===//

/// With `anyWidth`, the operation is the same for signed and unsigned bits.
template <bool anyWidth> static Types inferBinary(NodeBinder &node) {
  Types types = inferTwo(node, {"A", "B"});
  if (failed(types) || failed(node.requireNumber(0, anyWidth)))
    return failure();
  return types;
}

template <auto function>
static Value binary(NodeBinder &, Emitter &inside, Value a, Value b) {
  return (inside.*function)(a, b);
}

/// Folds over all operands from left to right. A scalar function that gives
/// nothing (division by zero) stops the fold.
template <std::optional<int64_t> (*onIntegers)(int64_t, int64_t),
          double (*onFloats)(double, double)>
static Constants foldLeft(NodeBinder &node) {
  SmallVector<ConstantTensor> all = broadcastConstants(node);
  if (all.empty())
    return {};
  ConstantTensor sum = all[0];
  for (auto [i, next] : llvm::enumerate(ArrayRef(all).drop_front())) {
    // More than one rounding per result: not exact in doubles.
    if (sum.isFloat() && i > 0)
      sum = ConstantTensor(sum.pack());
    for (auto [a, b] : llvm::zip(sum.integers, next.integers)) {
      std::optional<int64_t> value = onIntegers(a, b);
      if (!value)
        return {};
      a = *value;
    }
    for (auto [a, b] : llvm::zip(sum.floats, next.floats))
      a = onFloats(a, b);
  }
  return sum.pack();
}

using MaybeInteger = std::optional<int64_t>;
static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
static MaybeInteger addIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static MaybeInteger subIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
static MaybeInteger mulIntegers(int64_t a, int64_t b) {
  return wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
static MaybeInteger divIntegers(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  return a / b;
}
static MaybeInteger maxIntegers(int64_t a, int64_t b) { return std::max(a, b); }
static MaybeInteger minIntegers(int64_t a, int64_t b) { return std::min(a, b); }
static double addFloats(double a, double b) { return a + b; }
static double subFloats(double a, double b) { return a - b; }
static double mulFloats(double a, double b) { return a * b; }
static double divFloats(double a, double b) { return a / b; }
static double maxFloats(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
static double minFloats(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

//===--- Any number of operands ---===//

template <bool anyWidth> static Types inferVariadic(NodeBinder &node) {
  SmallVector<int64_t> shape;
  if (failed(node.operands({"data_0..."}, 1)) ||
      failed(node.requireNumber(0, anyWidth)))
    return failure();
  for (unsigned i = 0; i < node.size(); ++i)
    if (failed(node.requireSameElementType(0, i)) ||
        failed(node.broadcast(i, shape)))
      return failure();
  return node.makeType(shape);
}

template <auto scalar, bool mean = false>
static Values lowerVariadic(NodeBinder &node, Emitter &emitter) {
  if (node.size() == 1)
    return node.operand(0);
  auto body = [](Emitter &inside, ArrayRef<Value> scalars) {
    Value sum = scalars[0];
    for (Value next : scalars.drop_front())
      sum = (inside.*scalar)(sum, next);
    if (mean)
      sum = inside.div(sum, inside.scalar(sum.getType(), scalars.size()));
    return sum;
  };
  return emitter.elementwise(resultType(node),
                             SmallVector<Value>(node.node.getInputs()), body);
}

void penstock::onnx::addArithmetic(OperatorTable &table) {
  table.add("Add", {7, 13, 14}, inferBinary<true>,
            foldLeft<addIntegers, addFloats>, lowerTwo<binary<&Emitter::add>>);
  table.add("Sub", {7, 13, 14}, inferBinary<true>,
            foldLeft<subIntegers, subFloats>, lowerTwo<binary<&Emitter::sub>>);
  table.add("Mul", {7, 13, 14}, inferBinary<true>,
            foldLeft<mulIntegers, mulFloats>, lowerTwo<binary<&Emitter::mul>>);
  table.add("Div", {7, 13, 14}, inferBinary<false>,
            foldLeft<divIntegers, divFloats>, lowerTwo<binary<&Emitter::div>>);
  table.add("Max", {6, 8, 12, 13}, inferVariadic<false>,
            foldLeft<maxIntegers, maxFloats>, lowerVariadic<&Emitter::max>);
  table.add("Min", {6, 8, 12, 13}, inferVariadic<false>,
            foldLeft<minIntegers, minFloats>, lowerVariadic<&Emitter::min>);
  table.add("Sum", {6, 8, 13}, inferVariadic<true>,
            foldLeft<addIntegers, addFloats>, lowerVariadic<&Emitter::add>);
  table.add("Mean", {6, 8, 13}, inferVariadic<false>, nullptr,
            lowerVariadic<&Emitter::add, true>);
}
