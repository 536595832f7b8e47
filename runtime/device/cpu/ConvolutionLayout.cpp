//===- ConvolutionLayout.cpp - In which form a convolution is computed ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice depends on the shape alone: it is part of the numerics.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include "runtime/device/cpu/Columns.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

std::string penstock::runtime::chooseConvolutionLayout(
    penstock_conv_descriptor &descriptor) {
  // Measured per kind (docs/performance.md): with few channels per group the
  // copies cost more than they bring, as the library pads channels to a
  // multiple of its vectors; and a window of one element is a matrix product,
  // which wants no other layout. Where each weight gets few products and all of
  // them do not fit the second cache, the library reads and writes the gradient
  // once per sample.
  int64_t inputs = descriptor.input_channels / descriptor.groups;
  int64_t outputs = descriptor.output_channels / descriptor.groups;
  bool isDepthwise = descriptor.groups > 1 && inputs == 1 && outputs == 1;
  bool isNarrow = std::min(inputs, outputs) < 8 && !isDepthwise &&
                  descriptor.kind != PENSTOCK_CONV_WEIGHT_GRAD;
  bool isProduct = descriptor.groups == 1;
  for (uint32_t i = 0; i < descriptor.spatial_rank; ++i)
    isProduct &= descriptor.kernel[i] == 1 && descriptor.stride[i] == 1;
  std::vector<uint32_t> order = {PENSTOCK_CONV_LIBRARY, PENSTOCK_CONV_PLAIN};
  if (isNarrow || isProduct)
    std::swap(order[0], order[1]);
  ColumnSizes sizes = columnSizes(descriptor);
  if (descriptor.kind == PENSTOCK_CONV_WEIGHT_GRAD && descriptor.groups == 1 &&
      !isProduct && sizes.windows <= 512 &&
      sizes.channels * sizes.taps >= 1 << 18)
    order.insert(order.begin(), PENSTOCK_CONV_COLUMNS);
  std::string error;
  for (uint32_t layout : order) {
    descriptor.layout = layout;
    error = Convolution().plan(descriptor);
    if (error.empty())
      break;
  }
  return error;
}

std::string
penstock::runtime::describe(const penstock_conv_descriptor &descriptor) {
  auto list = [&](const int64_t *values) {
    std::string text;
    for (uint32_t i = 0; i < descriptor.spatial_rank; ++i)
      text += (i ? "x" : "") + std::to_string(values[i]);
    return text;
  };
  static const char *const kKinds[] = {
      "convolution", "gradient of the input of the convolution",
      "gradient of the weights of the convolution"};
  return std::string(kKinds[descriptor.kind]) + " of " +
         std::to_string(descriptor.batch) + " x " +
         std::to_string(descriptor.input_channels) + " channels of " +
         list(descriptor.input) + " to " +
         std::to_string(descriptor.output_channels) + " of " +
         list(descriptor.output) + " by " + list(descriptor.kernel) + " in " +
         std::to_string(descriptor.groups) +
         (descriptor.groups == 1 ? " group" : " groups");
}
