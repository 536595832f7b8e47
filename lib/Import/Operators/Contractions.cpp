//===- Contractions.cpp - Gemm and MatMul ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both become linalg.contract into zeros. Transposes are in the maps, a bias is
// added by an op of its own, so that gradients are contractions again.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"
#include "Recurrent.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- Gemm ---===//

namespace {
struct Gemm {
  double alpha = 1, beta = 1;
  bool transA = false, transB = false;
  int64_t m, n, k;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Gemm::bind(NodeBinder &node) {
  // C became optional at 11; a FusedGemm may always be without.
  bool needsC = node.getSince() < 11 && node.node.getDomainName().empty();
  if (failed(node.operands({"A", "B", "C"}, needsC ? 3 : 2)) ||
      failed(node.attribute("alpha", alpha)) ||
      failed(node.attribute("beta", beta)) ||
      failed(node.attribute("transA", transA)) ||
      failed(node.attribute("transB", transB)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.requireSameElementType(0, 1)))
    return failure();
  for (unsigned i : {0u, 1u})
    if (node.rank(i) != 2)
      return node.error()
             << "operand '" << node.operandName(i) << "' is " << node.type(i)
             << ", it must be a matrix; use MatMul for other ranks";
  m = node.shape(0)[transA];
  k = node.shape(0)[!transA];
  n = node.shape(1)[!transB];
  if (node.shape(1)[transB] != k)
    return node.error() << "sums over " << k << " columns of 'A' but "
                        << node.shape(1)[transB] << " rows of 'B' ("
                        << node.type(0) << (transA ? " transposed" : "")
                        << " times " << node.type(1)
                        << (transB ? " transposed)" : ")");
  if (node.has(2)) {
    SmallVector<int64_t> shape = {m, n};
    if (failed(node.requireSameElementType(0, 2)) ||
        failed(node.broadcast(2, shape)))
      return failure();
    if (ArrayRef<int64_t>(shape) != ArrayRef<int64_t>({m, n}))
      return node.error() << "operand 'C' is " << node.type(2)
                          << ", which does not broadcast to the result's " << m
                          << "x" << n;
  }
  if (!isa<FloatType>(node.elementType(0)))
    for (auto [name, value] : {std::pair("alpha", alpha), {"beta", beta}})
      if (value != static_cast<double>(static_cast<int64_t>(value)))
        return node.badAttribute(name, "whole for integer operands");
  return success();
}

static Types inferGemm(Gemm &gemm, NodeBinder &node) {
  return node.makeType({gemm.m, gemm.n});
}

static Values lowerGemm(Gemm &gemm, NodeBinder &node, Emitter &emitter) {
  enum { M, N, K };
  auto matrix = [&](int64_t row, int64_t column, bool transposed) {
    return transposed ? emitter.map(3, {column, row})
                      : emitter.map(3, {row, column});
  };
  auto type = node.makeType({gemm.m, gemm.n});
  Value product =
      emitter.contract(node.operand(0), node.operand(1), type,
                       {matrix(M, K, gemm.transA), matrix(K, N, gemm.transB),
                        matrix(M, N, false)});
  bool hasBias = node.has(2) && gemm.beta != 0;
  if (!hasBias && gemm.alpha == 1)
    return product;
  SmallVector<Value> operands = {product};
  if (hasBias)
    operands.push_back(node.operand(2));
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) {
    auto scaled = [&](Value value, double factor) {
      if (factor == 1)
        return value;
      return inside.mul(inside.scalar(value.getType(), factor), value);
    };
    Value result = scaled(scalars[0], gemm.alpha);
    if (hasBias)
      result = inside.add(result, scaled(scalars[1], gemm.beta));
    return result;
  };
  return emitter.elementwise(type, operands, body);
}

//===--- com.microsoft: FusedGemm ---===//

/// The activation behind the product. Its parameters are attributes with their
/// own names behind "activation_".
static LogicalResult bindActivation(NodeBinder &node, Activation &activation) {
  if (failed(node.attribute("activation", activation.name)))
    return failure();
  if (!activation.setDefaults())
    return node.badAttribute(
        "activation", "an activation that ONNX lists for recurrent layers");
  return success(
      succeeded(node.attribute("activation_alpha", activation.alpha)) &&
      succeeded(node.attribute("activation_beta", activation.beta)));
}

static Types inferFusedGemm(Gemm &gemm, NodeBinder &node) {
  Activation activation;
  if (failed(bindActivation(node, activation)))
    return failure();
  return inferGemm(gemm, node);
}

static Values lowerFusedGemm(Gemm &gemm, NodeBinder &node, Emitter &emitter) {
  Activation activation;
  if (failed(bindActivation(node, activation)))
    return failure();
  Value sum = (*lowerGemm(gemm, node, emitter))[0];
  return emitter.elementwise(Emitter::getType(sum), sum,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return activation.apply(inside, scalars[0]);
                             });
}

//===--- MatMul ---===//

namespace {
/// numpy.matmul: an operand of rank 1 is a row or a column, leading axes
/// broadcast.
struct MatMul {
  /// With the axis added that a vector lacks.
  SmallVector<int64_t> shapeA, shapeB;
  /// The leading axes of the result, then m, n.
  SmallVector<int64_t> batch;
  int64_t m, n, k;
  /// Without the axes that a vector lacks.
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult MatMul::bind(NodeBinder &node) {
  if (failed(node.operands({"A", "B"}, 2)) ||
      failed(node.requireArithmetic(0)) ||
      failed(node.requireSameElementType(0, 1)))
    return failure();
  for (unsigned i : {0u, 1u})
    if (node.rank(i) == 0)
      return node.error() << "operand '" << node.operandName(i)
                          << "' is a scalar; use Mul";
  llvm::append_range(shapeA, node.shape(0));
  llvm::append_range(shapeB, node.shape(1));
  bool rowVector = shapeA.size() == 1, columnVector = shapeB.size() == 1;
  if (rowVector)
    shapeA.insert(shapeA.begin(), 1);
  if (columnVector)
    shapeB.push_back(1);
  m = shapeA[shapeA.size() - 2];
  k = shapeA.back();
  n = shapeB.back();
  if (shapeB[shapeB.size() - 2] != k)
    return node.error() << "sums over " << k << " columns of 'A' but "
                        << shapeB[shapeB.size() - 2] << " rows of 'B' ("
                        << node.type(0) << " times " << node.type(1) << ")";
  auto batchA = ArrayRef<int64_t>(shapeA).drop_back(2);
  auto batchB = ArrayRef<int64_t>(shapeB).drop_back(2);
  size_t rank = std::max(batchA.size(), batchB.size());
  for (size_t d = 0; d < rank; ++d) {
    auto sizeAt = [&](ArrayRef<int64_t> sizes) -> int64_t {
      size_t missing = rank - sizes.size();
      return d < missing ? 1 : sizes[d - missing];
    };
    int64_t a = sizeAt(batchA), b = sizeAt(batchB);
    if (a != b && a != 1 && b != 1)
      return node.error() << "the leading axes of " << node.type(0) << " and "
                          << node.type(1) << " do not broadcast: " << a
                          << " against " << b << " at axis " << d;
    batch.push_back(a == 1 ? b : a);
  }
  result = batch;
  if (!rowVector)
    result.push_back(m);
  if (!columnVector)
    result.push_back(n);
  return success();
}

static Values lowerMatMul(MatMul &matMul, NodeBinder &node, Emitter &emitter) {
  auto [shapeA, shapeB, batch, m, n, k, result] = matMul;
  auto batchA = ArrayRef<int64_t>(shapeA).drop_back(2);
  auto batchB = ArrayRef<int64_t>(shapeB).drop_back(2);

  // The right operand is one matrix: all rows of the left one are one matrix.
  if (ShapedType::getNumElements(batchB) == 1) {
    int64_t rows = ShapedType::getNumElements(batchA) * m;
    Value a = emitter.reshape(node.operand(0), {rows, k});
    Value b = emitter.reshape(node.operand(1), {k, n});
    Value c = emitter.contract(a, b, node.makeType({rows, n}),
                               {emitter.map(3, {0, 2}), emitter.map(3, {2, 1}),
                                emitter.map(3, {0, 1})});
    return emitter.reshape(c, result);
  }

  // Otherwise dimensions (batch..., m, n, k) with the batch axes that are not
  // of size 1; an operand lacks those along which it is repeated.
  SmallVector<int64_t> sizes;
  for (int64_t size : batch)
    if (size != 1)
      sizes.push_back(size);
  int64_t rank = sizes.size();
  int64_t dimM = rank, dimN = rank + 1, dimK = rank + 2;
  auto collectDimensions = [&](ArrayRef<int64_t> own,
                               SmallVector<int64_t> &dims,
                               SmallVector<int64_t> &shape) {
    int64_t dim = 0;
    size_t missing = batch.size() - own.size();
    for (auto [d, size] : llvm::enumerate(batch)) {
      if (size == 1)
        continue;
      if (d >= missing && own[d - missing] == size) {
        dims.push_back(dim);
        shape.push_back(size);
      }
      ++dim;
    }
  };
  SmallVector<int64_t> dimsA, dimsB, newA, newB;
  collectDimensions(batchA, dimsA, newA);
  collectDimensions(batchB, dimsB, newB);
  dimsA.append({dimM, dimK});
  newA.append({m, k});
  dimsB.append({dimK, dimN});
  newB.append({k, n});
  SmallVector<int64_t> dimsC = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  dimsC.append({dimM, dimN});
  sizes.append({m, n});
  Value c = emitter.contract(
      emitter.reshape(node.operand(0), newA),
      emitter.reshape(node.operand(1), newB), node.makeType(sizes),
      {emitter.map(rank + 3, dimsA), emitter.map(rank + 3, dimsB),
       emitter.map(rank + 3, dimsC)});
  return emitter.reshape(c, result);
}

void penstock::onnx::addContractions(OperatorTable &table) {
  table.add("Gemm", {7, 9, 11, 13}, bound<inferGemm>, nullptr,
            bound<lowerGemm>);
  table.add("MatMul", {1, 9, 13}, bound<inferShape<MatMul>>, nullptr,
            bound<lowerMatMul>);
  table.addMicrosoft("FusedGemm", bound<inferFusedGemm>, bound<lowerFusedGemm>);
}
