//===- Window.cpp - Windows of convolutions and pooling -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the attributes and counts the windows.
//===----------------------------------------------------------------------===//

#include "Window.h"

#include <algorithm>

using namespace mlir;
using namespace penstock::onnx;

LogicalResult Window::bind(NodeBinder &node, ArrayRef<int64_t> windowSizes) {
  sizes.assign(windowSizes.begin(), windowSizes.end());
  strides.assign(rank(), 1);
  dilations.assign(rank(), 1);
  pads.assign(2 * rank(), 0);
  if (failed(node.attribute("strides", strides)) ||
      failed(node.attribute("dilations", dilations)) ||
      failed(node.attribute("pads", pads)) ||
      failed(node.attribute("auto_pad", autoPad)))
    return failure();
  auto arePositive = [&](StringRef name, ArrayRef<int64_t> values, size_t count,
                         int64_t least) -> LogicalResult {
    if (values.size() == count &&
        llvm::all_of(values, [&](int64_t value) { return value >= least; }))
      return success();
    return node.badAttribute(name,
                             Twine(count) + (least ? " positive numbers"
                                                   : " numbers that are not "
                                                     "negative"));
  };
  if (failed(arePositive("strides", strides, rank(), 1)) ||
      failed(arePositive("dilations", dilations, rank(), 1)) ||
      failed(arePositive("pads", pads, 2 * rank(), 0)))
    return failure();
  if (llvm::any_of(sizes, [](int64_t size) { return size < 1; }))
    return node.error() << "has a window without elements";
  if (autoPad.empty())
    autoPad = "NOTSET";
  if (autoPad != "NOTSET" && autoPad != "VALID" && !isSame())
    return node.badAttribute("auto_pad",
                             "NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  if (autoPad != "NOTSET" && node.hasAttribute("pads") &&
      llvm::any_of(pads, [](int64_t pad) { return pad != 0; }))
    return node.error() << "has both pads and auto_pad = " << autoPad;
  return success();
}

void Window::setPads(unsigned i, int64_t total, bool largerBefore) {
  int64_t half = total / 2;
  pads[i] = largerBefore ? total - half : half;
  pads[rank() + i] = total - pads[i];
}

LogicalResult Window::count(NodeBinder &node, ArrayRef<int64_t> shape,
                            bool ceil, SmallVectorImpl<int64_t> &counts) {
  for (unsigned i = 0; i < rank(); ++i) {
    int64_t size = shape[i + 2];
    if (isSame()) {
      counts.push_back((size + strides[i] - 1) / strides[i]);
      int64_t total = (counts.back() - 1) * strides[i] + extent(i) - size;
      setPads(i, std::max<int64_t>(total, 0), autoPad == "SAME_LOWER");
      continue;
    }
    int64_t room = size + pads[i] + pads[rank() + i] - extent(i);
    if (room < 0)
      return node.error() << "has windows of " << extent(i)
                          << " elements, but spatial dimension " << i
                          << " has only " << size + pads[i] + pads[rank() + i]
                          << " with its padding";
    int64_t number = room / strides[i] + 1;
    if (ceil && room % strides[i] != 0) {
      // Not one that begins in the padding after the last element.
      if (number * strides[i] < size + pads[i])
        ++number;
    }
    counts.push_back(number);
  }
  return success();
}
