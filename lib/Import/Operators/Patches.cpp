//===- Patches.cpp - MaxUnpool and Col2Im ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of windows back to where they are in the image. One lies where an
// index of data says, the other adds patches at constant positions.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"
#include "Window.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

//===--- MaxUnpool ---===//

namespace {
struct Unpool {
  /// The sizes that indices count through, and those of the result, which may
  /// be more.
  SmallVector<int64_t> counted, result;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Unpool::bind(NodeBinder &node) {
  SmallVector<int64_t> kernel;
  if (failed(node.operands({"X", "I", "output_shape"}, 2)) ||
      failed(node.requireFloat(0)) || failed(node.requireInteger(1)) ||
      failed(node.attribute("kernel_shape", kernel)))
    return failure();
  if (node.rank(0) < 3 || node.shape(0) != node.shape(1))
    return node.error() << "operands are " << node.type(0) << " and "
                        << node.type(1)
                        << "; both must have one shape with spatial dimensions";
  if (static_cast<int64_t>(kernel.size()) != node.rank(0) - 2)
    return node.badAttribute("kernel_shape", "as many numbers as 'X' has "
                                             "spatial dimensions");
  Window window;
  if (failed(window.bind(node, kernel)))
    return failure();
  counted.assign(node.shape(0).begin(), node.shape(0).end());
  for (unsigned i = 0; i < window.rank(); ++i)
    counted[i + 2] = (counted[i + 2] - 1) * window.strides[i] +
                     window.sizes[i] - window.pads[i] -
                     window.pads[window.rank() + i];
  result = counted;
  if (node.has(2)) {
    result.clear();
    if (failed(node.constantIntegers(2, result)))
      return failure();
  }
  bool fits = result.size() == counted.size() && result[0] == counted[0] &&
              result[1] == counted[1];
  for (size_t i = 2; fits && i < result.size(); ++i)
    fits = result[i] >= counted[i] && counted[i] > 0;
  if (!fits)
    return node.error() << "unpools " << node.type(0)
                        << " to a shape that its windows do not have";
  return success();
}

static Values lowerUnpool(Unpool &unpool, NodeBinder &node, Emitter &emitter) {
  MLIRContext *context = emitter.getContext();
  Type element = node.elementType(0);
  int64_t count = node.type(0).getNumElements();
  RankedTensorType type = resultType(node);
  if (count == 0)
    return emitter.filled(type, emitter.scalar(element, 0));
  auto flat = RankedTensorType::get(
      {ShapedType::getNumElements(unpool.counted)}, element);
  AffineMap at = AffineMap::get(1, 1, getAffineSymbolExpr(0, context), context);
  Value all = nn::ScatterOp::create(
      emitter.builder, emitter.loc, flat,
      emitter.reshape(node.operand(0), {count}),
      emitter.filled(flat, emitter.scalar(element, 0)),
      emitter.reshape(node.operand(1), {count}), nn::ScatterKind::None, at,
      emitter.builder.getArrayAttr(AffineMapAttr::get(emitter.map(1, {0}))));
  all = emitter.reshape(all, unpool.counted);
  SmallVector<OpFoldResult> low, high;
  for (auto [from, to] : llvm::zip_equal(unpool.counted, unpool.result)) {
    low.push_back(emitter.builder.getIndexAttr(0));
    high.push_back(emitter.builder.getIndexAttr(to - from));
  }
  if (unpool.counted != unpool.result)
    all = emitter.make<tensor::PadOp>(type, all, low, high,
                                      emitter.scalar(element, 0));
  return all;
}

//===--- Col2Im ---===//

namespace {
struct Fold {
  Window window;
  SmallVector<int64_t> image, result;
  /// The number of windows along each spatial dimension.
  SmallVector<int64_t> counts;
  int64_t channels;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Fold::bind(NodeBinder &node) {
  SmallVector<int64_t> block;
  if (failed(node.operands({"input", "image_shape", "block_shape"}, 3)) ||
      failed(node.requireFloat(0)) || failed(node.constantIntegers(1, image)) ||
      failed(node.constantIntegers(2, block)))
    return failure();
  bool fits = node.rank(0) == 3 && !block.empty() &&
              block.size() == image.size() &&
              ShapedType::getNumElements(block) > 0 &&
              node.shape(0)[1] % ShapedType::getNumElements(block) == 0;
  SmallVector<int64_t> shape = {1, 1};
  llvm::append_range(shape, image);
  if (fits && (failed(window.bind(node, block)) ||
               failed(window.count(node, shape, /*ceil=*/false, counts))))
    return failure();
  if (!fits || node.shape(0)[2] != ShapedType::getNumElements(counts))
    return node.error() << "operand 'input' is " << node.type(0)
                        << ", which is not [N, channels * block, blocks] for "
                           "these shapes of image and block";
  channels = node.shape(0)[1] / ShapedType::getNumElements(block);
  result = {node.shape(0)[0], channels};
  llvm::append_range(result, image);
  return success();
}

static Values lowerFold(Fold &fold, NodeBinder &node, Emitter &emitter) {
  MLIRContext *context = emitter.getContext();
  Type element = node.elementType(0);
  const Window &window = fold.window;
  unsigned rank = window.rank();
  int64_t samples = node.shape(0)[0],
          elements = ShapedType::getNumElements(window.sizes);
  int64_t windows = ShapedType::getNumElements(fold.counts);
  // 1. Where each element of each window is in the padded image.
  SmallVector<int64_t> padded;
  for (unsigned i = 0; i < rank; ++i)
    padded.push_back(fold.image[i] + window.pads[i] + window.pads[rank + i]);
  ConstantTensor positions(
      RankedTensorType::get({elements, windows}, emitter.builder.getI64Type()));
  size_t next = 0;
  forEachIndex(window.sizes, [&](ArrayRef<int64_t> inside) {
    forEachIndex(fold.counts, [&](ArrayRef<int64_t> which) {
      SmallVector<int64_t> at;
      for (unsigned i = 0; i < rank; ++i)
        at.push_back(which[i] * window.strides[i] +
                     inside[i] * window.dilations[i]);
      positions.integers[next++] = linearize(at, padded);
    });
  });
  // 2. The sums, then what is inside.
  auto flat = RankedTensorType::get(
      {samples, fold.channels, ShapedType::getNumElements(padded)}, element);
  AffineExpr dims[] = {getAffineDimExpr(0, context),
                       getAffineDimExpr(1, context),
                       getAffineSymbolExpr(0, context)};
  Value sums = nn::ScatterOp::create(
      emitter.builder, emitter.loc, flat,
      emitter.reshape(node.operand(0),
                      {samples, fold.channels, elements, windows}),
      emitter.filled(flat, emitter.scalar(element, 0)),
      emitter.constant(positions.pack()), nn::ScatterKind::Add,
      AffineMap::get(4, 1, dims, context),
      emitter.builder.getArrayAttr(AffineMapAttr::get(emitter.map(4, {2, 3}))));
  SmallVector<int64_t> shape = {samples, fold.channels}, offsets = {0, 0};
  llvm::append_range(shape, padded);
  offsets.append(window.pads.begin(), window.pads.begin() + rank);
  sums = emitter.reshape(sums, shape);
  if (shape != fold.result)
    sums = emitter.slice(sums, offsets, fold.result);
  return sums;
}

void penstock::onnx::addPatches(OperatorTable &table) {
  table.add("MaxUnpool", {9, 11, 22}, bound<inferShape<Unpool>>, nullptr,
            bound<lowerUnpool>);
  table.add("Col2Im", {18}, bound<inferShape<Fold>>, nullptr, bound<lowerFold>);
}
