//===- Einsum.cpp - Products named by their axes --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The equation is parsed to labels, an ellipsis to labels of its own. Operands
// are then multiplied from left to right, each product keeping what later ones
// or the result need. FusedMatMul, of com.microsoft, is an equation as well.
//===----------------------------------------------------------------------===//

#include "LabeledProduct.h"
#include "OperatorTable.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock::onnx;

namespace {
/// Letters are labels by their code; axes of an ellipsis are negative, the last
/// one -1.
struct Equation {
  SmallVector<SmallVector<int64_t>> operands;
  SmallVector<int64_t> labels;
  SmallVector<int64_t> result; ///< Sizes.

  LogicalResult bind(NodeBinder &node);

private:
  LogicalResult parse(NodeBinder &node);
  LogicalResult parseTerm(NodeBinder &node, StringRef term, int64_t rank,
                          SmallVectorImpl<int64_t> &labels);
  LogicalResult bindSizes(NodeBinder &node);
  /// The most axes that an ellipsis stands for.
  int64_t ellipsis = 0;
};
} // namespace

/// A negative rank is that of the result: the ellipsis has all its axes.
LogicalResult Equation::parseTerm(NodeBinder &node, StringRef term,
                                  int64_t rank,
                                  SmallVectorImpl<int64_t> &labels) {
  auto bad = [&] {
    return node.badAttribute("equation",
                             "terms of letters with at most one ellipsis each");
  };
  size_t dots = term.find("...");
  int64_t letters = term.size();
  if (dots != StringRef::npos)
    letters -= 3;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      int64_t axes = rank < 0 ? ellipsis : rank - letters;
      if (axes < 0)
        return node.error() << "the term '" << term << "' of attribute "
                            << "'equation' has more letters than the operand "
                               "has axes, "
                            << rank;
      ellipsis = std::max(ellipsis, axes);
      for (int64_t axis = axes; axis > 0; --axis)
        labels.push_back(-axis);
      i += 2;
      continue;
    }
    if (!llvm::isAlpha(term[i]))
      return bad();
    labels.push_back(term[i]);
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
    return node.error() << "the term '" << term << "' of attribute 'equation' "
                        << "names " << labels.size()
                        << " axes, its operand has " << rank;
  return success();
}

LogicalResult Equation::parse(NodeBinder &node) {
  std::string given;
  if (!node.hasAttribute("equation"))
    return node.error() << "attribute 'equation' is missing";
  if (failed(node.attribute("equation", given)))
    return failure();
  std::string text;
  for (char c : given)
    if (c != ' ')
      text += c;
  auto [left, right] = StringRef(text).split("->");
  bool isExplicit = StringRef(text).contains("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != node.size())
    return node.error() << "attribute 'equation' has " << terms.size()
                        << " terms, the node " << node.size() << " operands";
  for (auto [i, term] : llvm::enumerate(terms))
    if (failed(parseTerm(node, term, node.rank(i), operands.emplace_back())))
      return failure();
  if (isExplicit)
    return parseTerm(node, right, -1, labels);
  // Implicit: the ellipsis, then in alphabetical order what occurs once.
  for (int64_t axis = ellipsis; axis > 0; --axis)
    labels.push_back(-axis);
  for (int64_t letter = 0; letter < 128; ++letter) {
    int64_t count = 0;
    for (ArrayRef<int64_t> own : operands)
      count += llvm::count(own, letter);
    if (count == 1)
      labels.push_back(letter);
  }
  return success();
}

LogicalResult Equation::bindSizes(NodeBinder &node) {
  llvm::SmallDenseMap<int64_t, int64_t> sizes;
  for (auto [i, own] : llvm::enumerate(operands))
    for (auto [label, size] : llvm::zip_equal(own, node.shape(i))) {
      auto [known, isNew] = sizes.try_emplace(label, size);
      if (isNew || known->second == size)
        continue;
      // Only operands may be repeated along an axis, not an axis of one.
      bool mayRepeat =
          llvm::count(own, label) == 1 && (size == 1 || known->second == 1);
      if (!mayRepeat)
        return node.error()
               << "operand '" << node.operandName(i) << "' is " << node.type(i)
               << ", and an axis of it has the name of one of "
               << "size " << known->second;
      known->second = std::max(known->second, size);
    }
  for (auto [i, label] : llvm::enumerate(labels)) {
    auto size = sizes.find(label);
    if (size == sizes.end() ||
        llvm::is_contained(ArrayRef(labels).take_front(i), label))
      return node.badAttribute(
          "equation", "such that the result names axes of operands, each once");
    result.push_back(size->second);
  }
  return success();
}

LogicalResult Equation::bind(NodeBinder &node) {
  if (failed(node.operands({"Inputs..."}, 1)) ||
      failed(node.requireArithmetic(0)))
    return failure();
  for (unsigned i = 1; i < node.size(); ++i)
    if (failed(node.requireSameElementType(0, i)))
      return failure();
  return success(succeeded(parse(node)) && succeeded(bindSizes(node)));
}

static Values lowerEinsum(Equation &equation, NodeBinder &node,
                          Emitter &emitter) {
  Labeled product;
  for (auto [i, labels] : llvm::enumerate(equation.operands)) {
    Labeled operand =
        takeDiagonals(emitter, {node.operand(i), SmallVector<int64_t>(labels)});
    if (i == 0) {
      product = operand;
      continue;
    }
    // What the result or an operand after this one has is kept.
    SmallVector<int64_t> kept;
    for (ArrayRef<int64_t> part :
         {ArrayRef<int64_t>(product.labels), ArrayRef<int64_t>(operand.labels)})
      for (int64_t label : part) {
        bool isNeeded = llvm::is_contained(equation.labels, label);
        for (ArrayRef<int64_t> later :
             ArrayRef(equation.operands).drop_front(i + 1))
          isNeeded |= llvm::is_contained(later, label);
        if (isNeeded && !llvm::is_contained(kept, label))
          kept.push_back(label);
      }
    bool isLast = i + 1 == equation.operands.size();
    product = multiply(emitter, product, operand,
                       isLast ? ArrayRef<int64_t>(equation.labels) : kept);
  }
  product = sumOthers(emitter, product, equation.labels);
  product = reorder(emitter, product, equation.labels);
  return product.value;
}

//===--- com.microsoft: FusedMatMul ---===//

namespace {
struct FusedMatMul {
  double alpha = 1;
  bool transA = false, transB = false;
  Labeled a, b;
  /// The axes of the result by name, and their sizes.
  SmallVector<int64_t> labels, result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult FusedMatMul::bind(NodeBinder &node) {
  bool batchA = false, batchB = false;
  if (failed(node.operands({"A", "B"}, 2)) || failed(node.requireFloat(0)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.attribute("alpha", alpha)) ||
      failed(node.attribute("transA", transA)) ||
      failed(node.attribute("transB", transB)) ||
      failed(node.attribute("transBatchA", batchA)) ||
      failed(node.attribute("transBatchB", batchB)))
    return failure();
  enum { M = 'm', N = 'n', K = 'k' };
  auto label = [&](unsigned i, int64_t row, int64_t column, bool transposed,
                   bool rowsFirst) {
    Labeled operand{node.operand(i), {}};
    if (transposed)
      std::swap(row, column);
    for (int64_t axis = node.rank(i) - 2; axis > 0; --axis)
      operand.labels.push_back(-axis);
    // Rows may stand before the axes of the batch.
    operand.labels.insert(
        rowsFirst ? operand.labels.begin() : operand.labels.end(), row);
    operand.labels.push_back(column);
    return operand;
  };
  for (unsigned i : {0u, 1u})
    if (node.rank(i) < 2)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i)
                          << ", it must be a matrix or a batch of them";
  a = label(0, M, K, transA, batchA);
  b = label(1, K, N, transB, batchB);
  if (a.sizeOf(K) != b.sizeOf(K))
    return node.error() << "sums over " << a.sizeOf(K) << " columns of 'A' but "
                        << b.sizeOf(K) << " rows of 'B'";
  for (int64_t axis = std::max(node.rank(0), node.rank(1)) - 2; axis > 0;
       --axis) {
    int64_t sizeA = a.has(-axis) ? a.sizeOf(-axis) : 1;
    int64_t sizeB = b.has(-axis) ? b.sizeOf(-axis) : 1;
    if (sizeA != sizeB && sizeA != 1 && sizeB != 1)
      return node.error() << "the leading axes of " << node.type(0) << " and "
                          << node.type(1) << " do not broadcast";
    labels.push_back(-axis);
    result.push_back(sizeA == 1 ? sizeB : sizeA);
  }
  labels.append({M, N});
  result.append({a.sizeOf(M), b.sizeOf(N)});
  return success();
}

static Values lowerFusedMatMul(FusedMatMul &product, NodeBinder &node,
                               Emitter &emitter) {
  Value value = multiply(emitter, product.a, product.b, product.labels).value;
  if (product.alpha != 1)
    value = emitter.elementwise(
        Emitter::getType(value), value,
        [&](Emitter &inside, ArrayRef<Value> scalars) {
          return inside.mul(scalars[0],
                            inside.scalar(scalars[0].getType(), product.alpha));
        });
  return value;
}

void penstock::onnx::addEinsum(OperatorTable &table) {
  table.add("Einsum", {12}, bound<inferShape<Equation>>, nullptr,
            bound<lowerEinsum>);
  table.addMicrosoft("FusedMatMul", bound<inferShape<FusedMatMul>>,
                     bound<lowerFusedMatMul>);
}
