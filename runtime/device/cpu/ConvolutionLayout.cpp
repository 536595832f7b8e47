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
#include <optional>
#include <vector>

using namespace penstock::runtime;

namespace {

/// The tiles of one size that cover a plane.
struct Tiles {
  int64_t count = 1;    // of all samples
  int64_t lanes = 0;    // of the samples' tiles in a row, which fill vectors
  int64_t full = 0;     // as many as have all these outputs
  bool isFilled = true; // with outputs, mostly

  Tiles(const ConvolutionCall &conv, int64_t size) {
    const int64_t *plane =
        conv.kind == PENSTOCK_CONV_INPUT_GRAD ? conv.input : conv.output;
    int64_t outputs = 1;
    for (int i = 0; i < 2; ++i) {
      lanes = (plane[i] + size - 1) / size;
      outputs *= plane[i];
      count *= lanes;
    }
    isFilled = 10 * outputs >= 6 * count * size * size;
    lanes *= conv.batch;
    count *= conv.batch;
    full = outputs * conv.batch / (size * size);
  }
  bool fillVectors() const {
    return 10 * lanes >= 7 * ((lanes + 15) / 16 * 16);
  }
};

} // namespace

/// The layout by Winograd's algorithm that pays, by measurement
/// (docs/measurements/performance.md). Ours goes over the samples in vectors,
/// the library's over channels, but it transforms all weights in memory, for
/// which many tiles must make up; its gradients of the input are wrong for some
/// other paddings than one element. Where tiles reach far over the edges, none
/// pays.
static std::optional<uint32_t> findWinograd(const ConvolutionCall &conv) {
  if (conv.spatial_rank != 2 || conv.groups != 1)
    return std::nullopt;
  bool isPadded = true; // by one element on each side
  for (int i = 0; i < 2; ++i) {
    if (conv.kernel[i] != 3 || conv.stride[i] != 1 || conv.dilation[i] != 1)
      return std::nullopt;
    isPadded &= conv.pad_before[i] == 1 && conv.pad_after[i] == 1;
  }
  Tiles large(conv, 4), small(conv, 2);
  int64_t channels = std::min(conv.input_channels, conv.output_channels);
  int64_t weights = conv.input_channels * conv.output_channels;
  // All tiles are transformed at once where not all weights are (divide()).
  bool isTurned = conv.kind == PENSTOCK_CONV_INPUT_GRAD;
  int64_t sources = isTurned ? conv.output_channels : conv.input_channels;
  bool isBounded = weights <= 1 << 15 || sources * large.count <= 1 << 17;
  // Samples are taken by four, or by sixteen.
  bool hasSamples = conv.batch >= 4;
  bool isEven = hasSamples && (conv.batch % 4 == 0 || conv.batch > 16);
  bool isLarge = large.isFilled && large.fillVectors() && isBounded && isEven &&
                 large.count >= 16;
  if (conv.kind == PENSTOCK_CONV_WEIGHT_GRAD) {
    if (isLarge && channels >= 16)
      return PENSTOCK_CPU_CONV_TILES_4X4;
    bool isWide = weights >= 1 << 14;
    if (isPadded && large.isFilled && channels >= 24 &&
        large.count >= (isWide ? 48 : 32))
      return PENSTOCK_CPU_CONV_WINOGRAD;
    if (small.isFilled && weights >= 1 << 12 && conv.batch > 1 &&
        small.count >= 16 &&
        (hasSamples || (small.count >= 24 && small.fillVectors())))
      return PENSTOCK_CPU_CONV_TILES_2X2;
    return std::nullopt;
  }
  bool isForward = conv.kind == PENSTOCK_CONV_FORWARD;
  if (isLarge && channels >= (large.lanes % 16 == 0 ? 8 : 32))
    return PENSTOCK_CPU_CONV_TILES_4X4;
  if (small.isFilled && small.fillVectors() && hasSamples && channels >= 32 &&
      (isForward ? small.count >= 24 : small.full >= 64) && small.count <= 128)
    return PENSTOCK_CPU_CONV_TILES_2X2;
  if (isPadded && large.isFilled && channels >= 24 &&
      large.count >= (channels >= 64 && weights <= 1 << 14 ? 32 : 48))
    return PENSTOCK_CPU_CONV_WINOGRAD;
  return std::nullopt;
}

/// Returns true if the library has nothing better in its own layout than
/// products of matrices, which have as many rows as a group has channels.
static bool isGemm(ConvolutionCall conv) {
  conv.layout = PENSTOCK_CPU_CONV_LIBRARY;
  Convolution convolution;
  return convolution.plan(conv).empty() &&
         convolution.getImplementation().find("gemm") != std::string::npos;
}

/// Returns true if copies into the library's layout cost more than they gain,
/// because it pads few input channels to its vectors. Products gather the input
/// once per element of the window instead; forward, the library reads so few
/// channels as they are, and only copies the result.
static bool isNarrow(const ConvolutionCall &conv) {
  constexpr int64_t kFewChannels = 8;
  if (conv.groups != 1 || conv.kind == PENSTOCK_CONV_WEIGHT_GRAD ||
      conv.input_channels >= kFewChannels)
    return false;
  return conv.kind == PENSTOCK_CONV_INPUT_GRAD ||
         2 * columnSizes(conv).taps < conv.output_channels;
}

/// Ways for groups of few channels, where the library multiplies matrices of so
/// few rows. With zeros between channels an infinite value reaches those of
/// other groups, which the definition does not have.
static void addGroupedLayouts(const ConvolutionCall &conv, bool isDirect,
                              std::vector<uint32_t> &order) {
  if (conv.groups == 1 || !isGemm(conv))
    return;
  bool isWeightGrad = conv.kind == PENSTOCK_CONV_WEIGHT_GRAD;
  if (isWeightGrad || !isDirect)
    order.insert(order.begin(), PENSTOCK_CPU_CONV_COMBINED_GROUPS);
  order.insert(order.begin(), PENSTOCK_CPU_CONV_UPRIGHT);
  if (isWeightGrad)
    order.insert(order.begin(), PENSTOCK_CPU_CONV_OUTPUT_WINDOWS);
}

std::string
penstock::runtime::chooseConvolutionLayout(ConvolutionCall &descriptor,
                                           bool isDirect) {
  // Measured per kind (docs/measurements/performance.md). A window of one
  // element is a matrix product, which wants no other layout where a sample has
  // many, or in groups. Where each weight gets few products and all of them do
  // not fit the second cache, the library reads and writes the gradient once
  // per sample; and it copies much to leave out elements between windows of
  // one.
  bool isWeightGrad = descriptor.kind == PENSTOCK_CONV_WEIGHT_GRAD;
  ColumnSizes sizes = columnSizes(descriptor);
  bool isGrouped = descriptor.groups > 1;
  bool hasWideGroups = isGrouped && std::min(descriptor.input_channels,
                                             descriptor.output_channels) >=
                                        4 * descriptor.groups;
  bool isPoint = true, isDense = true;
  for (uint32_t i = 0; i < descriptor.spatial_rank; ++i) {
    isPoint &= descriptor.kernel[i] == 1;
    isDense &= descriptor.stride[i] == 1;
  }
  constexpr int64_t kManyWindows = 256; // of a sample
  bool isProduct =
      isPoint && isDense &&
      (isGrouped ? hasWideGroups
                 : sizes.windows >= kManyWindows * descriptor.batch);
  std::vector<uint32_t> order = {PENSTOCK_CPU_CONV_LIBRARY,
                                 PENSTOCK_CPU_CONV_PLAIN};
  if (isNarrow(descriptor) || isProduct)
    std::swap(order[0], order[1]);
  else
    addGroupedLayouts(descriptor, isDirect, order);
  bool hasFewWindows =
      sizes.windows <= 512 && sizes.channels * sizes.taps >= 1 << 18;
  bool isSparse = isPoint && !isDense && sizes.windows <= 1024;
  if (isWeightGrad && !isGrouped &&
      (isProduct || hasFewWindows || isSparse || isGemm(descriptor)))
    order.insert(order.begin(), PENSTOCK_CPU_CONV_COLUMNS);
  std::optional<uint32_t> winograd = findWinograd(descriptor);
  if (winograd && !isDirect)
    order.insert(order.begin(), *winograd);
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
